# SPDX-License-Identifier: Apache-2.0
"""Gold layer: aggregates of `silver.flights`. All functions are pure, from DataFrames to DataFrames.

Only integers are summed and averaged, so the result does not depend on the order of the rows. The same silver table
gives identical gold rows, and a second run changes nothing.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

DELAYED_MINUTES = 15
LOW_VISIBILITY_MILES = 3.0
STRONG_WIND_MPH = 20.0


def _count(condition: Column) -> Column:
    return f.count_if(condition)


def _share(part: str, whole: str) -> Column:
    """Return `part / whole` rounded to six digits; null if `whole` is 0."""
    return f.when(f.col(whole) > 0, f.round(f.col(part) / f.col(whole), 6))


def _mean(name: str) -> Column:
    return f.round(f.avg(f.col(name)), 6)


def route_punctuality(flights: DataFrame) -> DataFrame:
    """Return for each route the number of flights by outcome, the share on time, and delays (minutes; exact
    percentiles).
    """
    delay = f.col("arrival_delay_minutes")
    arrived = f.col("outcome") == "arrived"
    grouped = flights.groupBy("origin", "destination").agg(
        f.max("destination_name").alias("destination_name"),
        f.max("distance_miles").alias("distance_miles"),
        f.count("*").alias("flights"),
        _count(f.col("outcome") == "cancelled").alias("cancelled"),
        _count(arrived).alias("arrived"),
        _count(arrived & (delay < DELAYED_MINUTES)).alias("on_time"),
        _mean("departure_delay_minutes").alias("mean_departure_delay_minutes"),
        _mean("arrival_delay_minutes").alias("mean_arrival_delay_minutes"),
        f.percentile(delay, 0.5).alias("median_arrival_delay_minutes"),
        f.percentile(delay, 0.9).alias("p90_arrival_delay_minutes"),
    )
    return grouped.withColumn("on_time_share", _share("on_time", "arrived"))


def weather_class() -> Column:
    """Return the class of the weather at scheduled departure: the worst class that applies."""
    return (
        f.when(~f.col("weather_observed"), "not observed")
        .when(f.col("visibility_miles") < LOW_VISIBILITY_MILES, "low visibility")
        .when(f.col("precipitation_inches") > 0, "precipitation")
        .when(f.col("wind_speed_mph") >= STRONG_WIND_MPH, "strong wind")
        .otherwise("fair")
    )


def carrier_delays_by_weather(flights: DataFrame) -> DataFrame:
    """Return for each carrier and class of weather the numbers of flights by outcome, and mean delays in minutes."""
    arrived = f.col("outcome") == "arrived"
    grouped = (
        flights.withColumn("weather", weather_class())
        .groupBy("carrier", "weather")
        .agg(
            f.max("carrier_name").alias("carrier_name"),
            f.count("*").alias("flights"),
            _count(f.col("outcome") == "cancelled").alias("cancelled"),
            _count(arrived).alias("arrived"),
            _count(arrived & (f.col("arrival_delay_minutes") >= DELAYED_MINUTES)).alias("delayed"),
            _mean("departure_delay_minutes").alias("mean_departure_delay_minutes"),
            _mean("arrival_delay_minutes").alias("mean_arrival_delay_minutes"),
        )
    )
    return grouped.withColumn("delayed_share", _share("delayed", "arrived"))


def aircraft_utilisation(flights: DataFrame) -> DataFrame:
    """Return for each aircraft and month the number of flights, the days in service, and the hours in the air per day.

    The month is that of the local flight date. Only flights that arrived are counted.
    """
    arrived = flights.where((f.col("outcome") == "arrived") & f.col("tail_number").isNotNull())
    grouped = (
        arrived.withColumn("month", f.trunc("flight_date", "month"))
        .groupBy("tail_number", "month")
        .agg(
            f.max("aircraft_manufacturer").alias("manufacturer"),
            f.max("aircraft_model").alias("model"),
            f.max("aircraft_seats").alias("seats"),
            f.count("*").alias("flights"),
            f.count_distinct("flight_date").alias("days_in_service"),
            f.sum("air_time_minutes").alias("air_time_minutes"),
            f.sum("distance_miles").alias("distance_miles"),
        )
    )
    hours = f.col("air_time_minutes") / 60 / f.col("days_in_service")
    return grouped.withColumn("seat_miles", f.col("seats") * f.col("distance_miles")).withColumn(
        "air_hours_per_day_in_service", f.round(hours, 3)
    )
