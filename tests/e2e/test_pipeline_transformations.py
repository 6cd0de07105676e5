# SPDX-License-Identifier: Apache-2.0
"""The pipeline's transformations on a few rows in a real engine: times, gaps, duplicates, and detection of changes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lakegate.spark import expectations
from lakegate.spark.expectations import Expectation, Severity, UniqueKey, evaluate
from lakegate.spark.jobs import gold, silver
from lakegate.spark.jobs.bronze import read_delivery
from lakegate.spark.schemas import AIRCRAFT, DELIVERED, ROUTE_PUNCTUALITY, delivered_schema
from lakegate.spark.sources import Source
from lakegate.spark.tables import count_changes, plan_changes, with_row_hash

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def spark(root: SparkSession) -> SparkSession:
    return root.newSession()


def delivered(spark: SparkSession, source: str, *rows: dict[str, str]) -> DataFrame:
    values = [tuple(row.get(name, "NA") for name in DELIVERED[source]) for row in rows]
    return spark.createDataFrame(values, delivered_schema(source))


FLIGHT = {
    **{"year": "2013", "month": "1", "day": "1", "hour": "5", "minute": "15", "time_hour": "2013-01-01T10:00:00Z"},
    **{"dep_time": "517", "sched_dep_time": "515", "dep_delay": "2", "arr_time": "830", "sched_arr_time": "819"},
    **{"arr_delay": "11", "carrier": "UA", "flight": "1545", "tailnum": "N14228", "origin": "EWR", "dest": "IAH"},
    **{"air_time": "227", "distance": "1400"},
}
AIRPORTS = (
    {"faa": "EWR", "name": "Newark Liberty Intl", "tzone": "America/New_York"},
    {"faa": "IAH", "name": "George Bush Intercontinental", "tzone": "America/Chicago"},
    {"faa": "HNL", "name": "Honolulu Intl", "tzone": "Pacific/Honolulu"},
    {"faa": "LAX", "name": "Los Angeles Intl", "tzone": "America/Los_Angeles"},
)


def joined(spark: SparkSession, *flights: dict[str, str], weather: tuple[dict[str, str], ...] = ()) -> list[Any]:
    frame = silver.flights(
        silver.scheduled_flights(delivered(spark, "flights", *[FLIGHT | flight for flight in flights])),
        silver.carriers(delivered(spark, "airlines", {"carrier": "UA", "name": "United Air Lines Inc."})),
        silver.airports(delivered(spark, "airports", *AIRPORTS)),
        silver.aircraft(delivered(spark, "planes", {"tailnum": "N14228", "model": "737-824", "seats": "149"})),
        silver.weather(delivered(spark, "weather", *weather)),
    )
    return frame.orderBy("flight_number").collect()


def at(*parts: int) -> datetime:
    """Return a UTC time as Spark returns it: in the local zone of this process, without zone information."""
    return datetime(*parts, tzinfo=UTC).astimezone().replace(tzinfo=None)  # type: ignore[arg-type, misc]  # year, month, day, hour, minute


def test_departure_and_arrival_are_instants(spark: SparkSession) -> None:
    (flight,) = joined(spark, {})
    assert flight.scheduled_departure == at(2013, 1, 1, 10, 15)
    assert flight.departure == at(2013, 1, 1, 10, 17)
    assert flight.scheduled_arrival == at(2013, 1, 1, 14, 19)  # 08:19 in Houston, which is six hours behind UTC
    assert flight.arrival == at(2013, 1, 1, 14, 30)


def test_a_night_flight_arrives_on_the_next_day(spark: SparkSession) -> None:
    late = {"hour": "22", "minute": "30", "time_hour": "2013-01-02T03:00:00Z", "dest": "LAX", "sched_arr_time": "130"}
    (flight,) = joined(spark, late)
    assert flight.scheduled_arrival == at(2013, 1, 2, 9, 30)  # 01:30 in Los Angeles on the second of January


def test_time_2400_is_the_end_of_the_day(spark: SparkSession) -> None:
    late = {"hour": "21", "minute": "0", "time_hour": "2013-01-02T02:00:00Z", "sched_arr_time": "2400"}
    (flight,) = joined(spark, late)
    assert flight.scheduled_arrival == at(2013, 1, 2, 6, 0)


def test_westbound_arrival_is_on_the_same_day(spark: SparkSession) -> None:
    west = {"hour": "10", "minute": "0", "time_hour": "2013-01-01T15:00:00Z", "dest": "HNL", "sched_arr_time": "1555"}
    (flight,) = joined(spark, west)
    assert flight.scheduled_arrival == at(2013, 1, 2, 1, 55)


def test_daylight_saving_change_during_a_flight_is_applied(spark: SparkSession) -> None:
    night = {"month": "3", "day": "9", "hour": "23", "minute": "30", "time_hour": "2013-03-10T04:00:00Z"}
    (flight,) = joined(spark, night | {"dest": "IAH", "sched_arr_time": "430"})
    assert flight.scheduled_arrival == at(2013, 3, 10, 9, 30)  # 04:30 summer time, five hours behind UTC


def test_an_unknown_destination_has_no_arrival_but_keeps_its_flight(spark: SparkSession) -> None:
    (flight,) = joined(spark, {"dest": "SJU"})
    assert (flight.destination, flight.destination_name, flight.scheduled_arrival) == ("SJU", None, None)
    assert flight.arrival_delay_minutes == 11


def test_cancelled_and_never_arrived_flights_are_distinguished(spark: SparkSession) -> None:
    cancelled = {
        "flight": "1",
        "dep_time": "NA",
        "dep_delay": "NA",
        "arr_time": "NA",
        "arr_delay": "NA",
        "air_time": "NA",
    }
    diverted = {"flight": "2", "arr_delay": "NA", "air_time": "NA"}
    rows = joined(spark, cancelled, diverted, {"flight": "3"})
    assert [row.outcome for row in rows] == ["cancelled", "not arrived", "arrived"]
    assert rows[0].departure is None


def test_weather_matches_hour_and_airport(spark: SparkSession) -> None:
    hour = {"time_hour": "2013-01-01T10:00:00Z"}
    weather = (
        hour | {"origin": "EWR", "temp": "39.02", "visib": "10"},
        hour | {"origin": "JFK", "temp": "1"},
        {"origin": "EWR", "temp": "2", "time_hour": "2013-01-01T11:00:00Z"},
    )
    (flight,) = joined(spark, {}, weather=weather)
    assert (flight.weather_observed, flight.temperature_fahrenheit, flight.wind_speed_mph) == (True, 39.02, None)


def test_repeated_autumn_hour_is_kept_twice(spark: SparkSession) -> None:
    local = {"origin": "EWR", "year": "2013", "month": "11", "day": "3", "hour": "1"}
    hours = ({"time_hour": "2013-11-03T05:00:00Z"}, {"time_hour": "2013-11-03T06:00:00Z"})
    frame = silver.weather(delivered(spark, "weather", *[local | hour for hour in hours]))
    assert frame.count() == 2


def test_duplicate_keys_keep_the_same_row_in_any_order(spark: SparkSession) -> None:
    rows = ({"tailnum": "N1", "seats": "2"}, {"tailnum": "N1", "seats": "10"})
    kept = [silver.aircraft(delivered(spark, "planes", *order)).collect() for order in (rows, rows[::-1])]
    assert len(kept[0]) == 1
    assert kept[0] == kept[1]


@pytest.mark.parametrize("value", ["NA", "", " "])
def test_absent_value_is_null_and_no_error(spark: SparkSession, value: str) -> None:
    frame = delivered(spark, "planes", {"tailnum": "N1", "year": value})
    assert silver.aircraft(frame).collect()[0].built_year is None
    assert [result.violations for result in evaluate("d", frame, expectations.delivered("planes"))] == [0, 0]


@pytest.mark.parametrize("value", ["19x4", "1e3000", "3000000000"])
def test_unreadable_values_are_counted(spark: SparkSession, value: str) -> None:
    frame = delivered(spark, "planes", {"tailnum": "N1", "year": value}, {"tailnum": "N2"})
    assert [result.violations for result in evaluate("d", frame, expectations.delivered("planes"))] == [0, 1]


def test_contradictory_departure_is_counted(spark: SparkSession) -> None:
    wrong_zone = FLIGHT | {"time_hour": "2013-01-01T09:00:00Z"}
    frame = silver.flights(
        silver.scheduled_flights(delivered(spark, "flights", FLIGHT | {"flight": "1"}, wrong_zone)),
        silver.carriers(delivered(spark, "airlines", {"carrier": "UA", "name": "U"})),
        silver.airports(delivered(spark, "airports", *AIRPORTS)),
        silver.aircraft(delivered(spark, "planes")),
        silver.weather(delivered(spark, "weather")),
    )
    found = {result.expectation: result.violations for result in evaluate("f", frame, expectations.OF_FLIGHTS)}
    assert found["times_agree"] == 1
    assert found["aircraft_known"] == 2
    assert found["carrier_known"] == 0


def test_rows_and_keys_are_counted_in_the_order_of_the_rules(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1), (1, 5), (2, None)], "k int, v int")
    requested = (
        UniqueKey(name="key", description="", severity=Severity.FAIL, columns=("k",)),
        Expectation(name="small", description="", severity=Severity.WARN, violated_by="v > 3"),
    )
    assert [(result.expectation, result.violations) for result in evaluate("d", frame, requested)] == [
        ("key", 1),
        ("small", 1),
    ]


def aircraft_rows(spark: SparkSession, *rows: tuple[str, int | None, int | None]) -> DataFrame:
    schema = t.StructType([AIRCRAFT.schema[name] for name in AIRCRAFT.business_columns])
    values = [(tail, None, None, None, None, engines, seats, None, None) for tail, engines, seats in rows]
    return with_row_hash(spark.createDataFrame(values, schema), AIRCRAFT)


def planned(spark: SparkSession, new: DataFrame, old: DataFrame) -> dict[str, str]:
    changes = plan_changes(new, old, AIRCRAFT.key)
    return {row["tail_number"]: row["_operation"] for row in changes.collect()}


def test_only_differing_rows_are_changes(spark: SparkSession) -> None:
    old = aircraft_rows(spark, ("same", 2, 100), ("other", 2, 100), ("gone", 2, 100))
    new = aircraft_rows(spark, ("same", 2, 100), ("other", 2, 101), ("new", 2, 100))
    assert planned(spark, new, old) == {"other": "update", "gone": "delete", "new": "insert"}
    changes = count_changes(plan_changes(new, old, AIRCRAFT.key))
    assert (changes.inserted, changes.updated, changes.deleted) == (1, 1, 1)


def test_a_value_that_moves_to_the_next_column_is_a_change(spark: SparkSession) -> None:
    old, new = aircraft_rows(spark, ("a", 2, None)), aircraft_rows(spark, ("a", None, 2))
    assert planned(spark, new, old) == {"a": "update"}


def test_equal_rows_are_no_change_whatever_their_order(spark: SparkSession) -> None:
    rows: tuple[tuple[str, int | None, int | None], ...] = (("a", 1, None), ("b", None, 2))
    assert planned(spark, aircraft_rows(spark, *rows), aircraft_rows(spark, *rows[::-1])) == {}


def gold_flights(spark: SparkSession, *delays: int | None) -> DataFrame:
    schema = (
        "origin string, destination string, destination_name string, distance_miles int, outcome string, "
        "departure_delay_minutes int, arrival_delay_minutes int"
    )
    rows = [
        ("EWR", "IAH", "B", 1400, "arrived" if delay is not None else "cancelled", delay, delay) for delay in delays
    ]
    return spark.createDataFrame(rows, schema)


def test_on_time_ends_at_fifteen_minutes(spark: SparkSession) -> None:
    row = gold.route_punctuality(gold_flights(spark, 14, 15, -3, None)).collect()[0]
    assert (row.flights, row.cancelled, row.arrived, row.on_time) == (4, 1, 3, 2)
    assert row.on_time_share == pytest.approx(2 / 3, abs=1e-6)
    assert row.median_arrival_delay_minutes == 14.0


def test_route_without_arrivals_has_no_on_time_share(spark: SparkSession) -> None:
    frame = with_row_hash(gold.route_punctuality(gold_flights(spark, None)), ROUTE_PUNCTUALITY)
    row = frame.collect()[0]
    assert (row.on_time_share, row.mean_arrival_delay_minutes) == (None, None)


@pytest.mark.parametrize(
    ("observed", "visibility", "rain", "wind", "expected"),
    [
        (False, None, None, None, "not observed"),
        (True, 1.0, 0.3, 30.0, "low visibility"),
        (True, 3.0, 0.01, 30.0, "precipitation"),
        (True, 10.0, 0.0, 20.0, "strong wind"),
        (True, 10.0, 0.0, 19.9, "fair"),
        (True, 10.0, 0.0, None, "fair"),
    ],
)
def test_worst_weather_determines_the_category(
    spark: SparkSession, observed: bool, visibility: float | None, rain: float | None, wind: float | None, expected: str
) -> None:
    schema = "weather_observed boolean, visibility_miles double, precipitation_inches double, wind_speed_mph double"
    frame = spark.createDataFrame([(observed, visibility, rain, wind)], schema)
    assert frame.select(gold.weather_class().alias("weather")).collect()[0].weather == expected


def test_utilisation_counts_days_and_hours_of_arrived_flights(spark: SparkSession) -> None:
    schema = (
        "tail_number string, flight_date date, outcome string, air_time_minutes int, distance_miles int, "
        "aircraft_manufacturer string, aircraft_model string, aircraft_seats int"
    )
    day, next_day, next_month = (datetime(2013, *parts).date() for parts in ((1, 30), (1, 31), (2, 1)))
    rows = [
        ("N1", day, "arrived", 60, 100, "B", "737", 10),
        ("N1", day, "arrived", 60, 100, "B", "737", 10),
        ("N1", next_day, "arrived", 60, 100, "B", "737", 10),
        ("N1", next_day, "cancelled", None, 100, "B", "737", 10),
        ("N1", next_month, "arrived", 30, 50, "B", "737", 10),
        (None, day, "arrived", 60, 100, None, None, None),
    ]
    found = gold.aircraft_utilisation(spark.createDataFrame(rows, schema)).orderBy("month").collect()
    assert [(row.flights, row.days_in_service, row.air_time_minutes) for row in found] == [(3, 2, 180), (1, 1, 30)]
    assert found[0].air_hours_per_day_in_service == 1.5
    assert found[0].seat_miles == 3000


def test_shifted_header_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "airlines.csv"
    path.write_text("name,carrier\nUnited,UA\n")
    with pytest.raises(Exception, match="header"):
        read_delivery(spark, Source("airlines", path, "0" * 64), path).collect()
