# SPDX-License-Identifier: Apache-2.0
"""Silver layer: typed, deduplicated and joined rows. All functions are pure, from DataFrames to DataFrames.

Departures: the delivery has the scheduled local time (`hour`, `minute`) and its hour in UTC (`time_hour`). The UTC hour
is used, because a local time is ambiguous in the hour in which clocks are set back.

Arrivals: the delivery has the local time at the destination without a date. The date is the first one that puts the
arrival after the departure.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

_ABSENT = ("NA", "")


def present(name: str) -> Column:
    """Return the text of a delivered column; null if the text marks the value as absent."""
    return f.when(~f.trim(f.col(name)).isin(*_ABSENT), f.trim(f.col(name)))


def typed(name: str, kind: str) -> Column:
    """Return a delivered column as `kind` (a SQL type); null if the value is absent or not convertible.

    The expectations of the delivered file count the values that are not convertible.
    """
    return present(name).try_cast(kind)


def deduplicated(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return one row for each key. Of several rows with a key, every run keeps the same one: the first, ordered by the
    other columns.
    """
    order = [f.col(name) for name in frame.columns if name not in key]
    ranked = frame.withColumn("_rank", f.row_number().over(Window.partitionBy(*key).orderBy(*order)))
    return ranked.where(f.col("_rank") == 1).drop("_rank")


def weather(delivered: DataFrame) -> DataFrame:
    """Return the hourly weather. The hour is in UTC, because a local hour occurs twice when clocks are set back."""
    rows = delivered.select(
        present("origin").alias("origin"),
        typed("time_hour", "timestamp").alias("observed_hour"),
        typed("temp", "double").alias("temperature_fahrenheit"),
        typed("dewp", "double").alias("dew_point_fahrenheit"),
        typed("humid", "double").alias("relative_humidity_percent"),
        typed("wind_dir", "int").alias("wind_direction_degrees"),
        typed("wind_speed", "double").alias("wind_speed_mph"),
        typed("wind_gust", "double").alias("wind_gust_mph"),
        typed("precip", "double").alias("precipitation_inches"),
        typed("pressure", "double").alias("pressure_millibar"),
        typed("visib", "double").alias("visibility_miles"),
    )
    return deduplicated(rows, ("origin", "observed_hour"))


def aircraft(delivered: DataFrame) -> DataFrame:
    """Return the aircraft by tail number."""
    rows = delivered.select(
        present("tailnum").alias("tail_number"),
        typed("year", "int").alias("built_year"),
        present("type").alias("aircraft_type"),
        present("manufacturer").alias("manufacturer"),
        present("model").alias("model"),
        typed("engines", "int").alias("engines"),
        typed("seats", "int").alias("seats"),
        typed("speed", "int").alias("cruising_speed_mph"),
        present("engine").alias("engine_type"),
    )
    return deduplicated(rows, ("tail_number",))


def scheduled_flights(delivered: DataFrame) -> DataFrame:
    """Return the flights, typed and deduplicated, without columns of other sources."""
    rows = delivered.select(
        f.concat_ws("-", present("year"), present("month"), present("day")).try_cast("date").alias("flight_date"),
        present("carrier").alias("carrier"),
        typed("flight", "int").alias("flight_number"),
        present("origin").alias("origin"),
        present("dest").alias("destination"),
        present("tailnum").alias("tail_number"),
        typed("time_hour", "timestamp").alias("departure_hour"),
        typed("minute", "int").alias("_minute"),
        typed("hour", "int").alias("scheduled_local_hour"),
        typed("dep_delay", "int").alias("departure_delay_minutes"),
        typed("arr_delay", "int").alias("arrival_delay_minutes"),
        typed("dep_time", "int").alias("_departed_at"),
        typed("sched_arr_time", "int").alias("_arrival_clock"),
        typed("air_time", "int").alias("air_time_minutes"),
        typed("distance", "int").alias("distance_miles"),
    )
    outcome = (
        f.when(f.col("_departed_at").isNull(), "cancelled")
        .when(f.col("arrival_delay_minutes").isNull(), "not arrived")
        .otherwise("arrived")
    )
    scheduled = f.timestamp_add("MINUTE", f.col("_minute"), f.col("departure_hour"))
    rows = rows.withColumn("outcome", outcome).withColumn("scheduled_departure", scheduled)
    rows = rows.withColumn("departure", minutes_after("scheduled_departure", "departure_delay_minutes"))
    return deduplicated(rows, ("flight_date", "carrier", "flight_number", "origin")).drop("_minute", "_departed_at")


def minutes_after(instant: str, minutes: str) -> Column:
    """Return `instant` plus `minutes`; null if either is null."""
    return f.timestamp_add("MINUTE", f.col(minutes), f.col(instant))


def arrival_instant(day: Column, clock: Column, zone: Column, after: Column) -> Column:
    """Return the first time after `after` at which a clock in `zone` shows `clock`.

    `clock` is hours * 100 + minutes; 2400 is midnight. `day` is the local date of departure. The flight must take less
    than a day. The result is null if `day`, `clock` or `zone` is null.
    """
    minutes = f.floor(clock / 100).cast("int") * 60 + clock % 100
    same_day = f.to_utc_timestamp(f.timestamp_add("MINUTE", minutes, day.cast("timestamp")), zone)
    next_day = f.to_utc_timestamp(f.timestamp_add("MINUTE", minutes + 24 * 60, day.cast("timestamp")), zone)
    return f.when(same_day > after, same_day).otherwise(next_day)


def airports(delivered: DataFrame) -> DataFrame:
    """Return the airports: code, name and time zone."""
    rows = delivered.select(
        present("faa").alias("airport"), present("name").alias("airport_name"), present("tzone").alias("time_zone")
    )
    return deduplicated(rows, ("airport",))


def carriers(delivered: DataFrame) -> DataFrame:
    """Return the carriers: code and name."""
    return deduplicated(
        delivered.select(present("carrier").alias("carrier"), present("name").alias("carrier_name")), ("carrier",)
    )


def flights(
    scheduled: DataFrame, carriers: DataFrame, airports: DataFrame, aircraft: DataFrame, weather: DataFrame
) -> DataFrame:
    """Join flights with carriers, airports, aircraft and weather. Every join keeps the flight; unknown values are null.

    `scheduled` is the result of `scheduled_flights`; the other parameters are the results of the functions with their
    names. Beside the columns of the table, the result has `origin_time_zone` and `scheduled_local_hour`, by which
    expectations check the times.
    """
    origin = airports.select(
        f.col("airport").alias("origin"),
        f.col("airport_name").alias("origin_name"),
        f.col("time_zone").alias("origin_time_zone"),
    )
    destination = airports.select(
        f.col("airport").alias("destination"),
        f.col("airport_name").alias("destination_name"),
        f.col("time_zone").alias("destination_time_zone"),
    )
    tails = aircraft.select(
        "tail_number",
        f.col("manufacturer").alias("aircraft_manufacturer"),
        f.col("model").alias("aircraft_model"),
        f.col("built_year").alias("aircraft_built_year"),
        f.col("seats").alias("aircraft_seats"),
    )
    hours = weather.select(
        "origin",
        f.col("observed_hour").alias("departure_hour"),
        f.lit(True).alias("_observed"),
        *("temperature_fahrenheit", "wind_speed_mph", "precipitation_inches", "visibility_miles"),
    )
    joined = (
        scheduled.join(f.broadcast(carriers), "carrier", "left")
        .join(f.broadcast(origin), "origin", "left")
        .join(f.broadcast(destination), "destination", "left")
        .join(f.broadcast(tails), "tail_number", "left")
        .join(f.broadcast(hours), ["origin", "departure_hour"], "left")
    )
    arrival = arrival_instant(
        f.col("flight_date"), f.col("_arrival_clock"), f.col("destination_time_zone"), f.col("scheduled_departure")
    )
    return (
        joined.withColumn("weather_observed", f.coalesce(f.col("_observed"), f.lit(False)))
        .withColumn("scheduled_arrival", arrival)
        .withColumn("arrival", minutes_after("scheduled_arrival", "arrival_delay_minutes"))
        .drop("_observed", "_arrival_clock")
    )
