# SPDX-License-Identifier: Apache-2.0
"""Define the schema of every table. No schema is inferred from a file or a query.

Bronze columns are the delivered ones, all text. Silver and gold columns are typed, and their names contain the unit.
The pipeline adds the last two columns: `_row_hash`, by which a later run detects that nothing changed, and
`_updated_at`. Every timestamp is an instant in UTC.
"""

from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import types as t

ROW_HASH = "_row_hash"
UPDATED_AT = "_updated_at"
SOURCE_SHA256 = "_source_sha256"

DELIVERED = MappingProxyType(
    {
        "airlines": ("carrier", "name"),
        "airports": ("faa", "name", "lat", "lon", "alt", "tz", "dst", "tzone"),
        "planes": ("tailnum", "year", "type", "manufacturer", "model", "engines", "seats", "speed", "engine"),
        "weather": (
            *("origin", "year", "month", "day", "hour", "temp", "dewp", "humid", "wind_dir", "wind_speed"),
            *("wind_gust", "precip", "pressure", "visib", "time_hour"),
        ),
        "flights": (
            *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time"),
            *("arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour"),
            *("minute", "time_hour"),
        ),
    }
)


@dataclass(frozen=True)
class Table:
    """One table: name `<namespace>.<name>`, columns, natural key (empty: rows are only appended), and partitioning."""

    namespace: str
    name: str
    comment: str
    schema: t.StructType
    key: tuple[str, ...] = ()
    partitioned_by: str | None = None

    @property
    def ident(self) -> str:
        """Return the name of the table in SQL, relative to the catalog of the session."""
        return f"{self.namespace}.{self.name}"

    @property
    def business_columns(self) -> tuple[str, ...]:
        """Return the columns by which rows are compared: all except those that the pipeline adds."""
        return tuple(name for name in self.schema.names if not name.startswith("_"))


def _columns(*columns: tuple[str, t.DataType], required: tuple[str, ...] = ()) -> t.StructType:
    return t.StructType([t.StructField(name, kind, name not in required) for name, kind in columns])


def delivered_schema(source: str) -> t.StructType:
    """Return the schema of a delivered file: its columns in order, all of type text, so that no value is lost."""
    return _columns(*((name, t.StringType()) for name in DELIVERED[source]))


def _bronze(source: str) -> Table:
    columns = [(name, t.StringType()) for name in DELIVERED[source]]
    own = [("_source_file", t.StringType()), (SOURCE_SHA256, t.StringType()), ("_ingested_at", t.TimestampType())]
    return Table(
        namespace="bronze",
        name=source,
        comment=f"{source} as delivered, every delivery under the SHA-256 of its file",
        schema=_columns(*columns, *own, required=tuple(name for name, _ in own)),
        partitioned_by=SOURCE_SHA256,
    )


def _keyed(
    ident: str,
    comment: str,
    key: tuple[str, ...],
    columns: tuple[tuple[str, t.DataType], ...],
    partitioned_by: str | None = None,
) -> Table:
    namespace, name = ident.split(".")
    own = ((ROW_HASH, t.StringType()), (UPDATED_AT, t.TimestampType()))
    schema = _columns(*columns, *own, required=(*key, ROW_HASH, UPDATED_AT))
    return Table(namespace, name, comment, schema, key, partitioned_by)


_text, _int, _long, _double = t.StringType(), t.IntegerType(), t.LongType(), t.DoubleType()
_date, _instant, _flag = t.DateType(), t.TimestampType(), t.BooleanType()

BRONZE = MappingProxyType({source: _bronze(source) for source in DELIVERED})

WEATHER = _keyed(
    "silver.weather",
    "hourly observations at the airports of New York City",
    ("origin", "observed_hour"),
    (
        ("origin", _text),
        ("observed_hour", _instant),
        ("temperature_fahrenheit", _double),
        ("dew_point_fahrenheit", _double),
        ("relative_humidity_percent", _double),
        ("wind_direction_degrees", _int),
        ("wind_speed_mph", _double),
        ("wind_gust_mph", _double),
        ("precipitation_inches", _double),
        ("pressure_millibar", _double),
        ("visibility_miles", _double),
    ),
    "months(observed_hour)",
)

AIRCRAFT = _keyed(
    "silver.aircraft",
    "the aircraft that flew, by tail number",
    ("tail_number",),
    (
        ("tail_number", _text),
        ("built_year", _int),
        ("aircraft_type", _text),
        ("manufacturer", _text),
        ("model", _text),
        ("engines", _int),
        ("seats", _int),
        ("cruising_speed_mph", _int),
        ("engine_type", _text),
    ),
)

FLIGHTS = _keyed(
    "silver.flights",
    "one scheduled flight per row, joined with carrier, airports, aircraft and the weather at its scheduled departure",
    ("flight_date", "carrier", "flight_number", "origin"),
    (
        ("flight_date", _date),
        ("carrier", _text),
        ("flight_number", _int),
        ("origin", _text),
        ("destination", _text),
        ("carrier_name", _text),
        ("origin_name", _text),
        ("destination_name", _text),
        ("destination_time_zone", _text),
        ("tail_number", _text),
        ("aircraft_manufacturer", _text),
        ("aircraft_model", _text),
        ("aircraft_built_year", _int),
        ("aircraft_seats", _int),
        ("outcome", _text),
        ("scheduled_departure", _instant),
        ("departure", _instant),
        ("departure_delay_minutes", _int),
        ("scheduled_arrival", _instant),
        ("arrival", _instant),
        ("arrival_delay_minutes", _int),
        ("air_time_minutes", _int),
        ("distance_miles", _int),
        ("weather_observed", _flag),
        ("temperature_fahrenheit", _double),
        ("wind_speed_mph", _double),
        ("precipitation_inches", _double),
        ("visibility_miles", _double),
    ),
    "months(scheduled_departure)",
)

ROUTE_PUNCTUALITY = _keyed(
    "gold.route_punctuality",
    "how punctual each route was; a flight is on time when it arrives less than 15 minutes late",
    ("origin", "destination"),
    (
        ("origin", _text),
        ("destination", _text),
        ("destination_name", _text),
        ("distance_miles", _int),
        ("flights", _long),
        ("cancelled", _long),
        ("arrived", _long),
        ("on_time", _long),
        ("on_time_share", _double),
        ("mean_departure_delay_minutes", _double),
        ("mean_arrival_delay_minutes", _double),
        ("median_arrival_delay_minutes", _double),
        ("p90_arrival_delay_minutes", _double),
    ),
)

CARRIER_DELAYS_BY_WEATHER = _keyed(
    "gold.carrier_delays_by_weather",
    "delays of each carrier by the weather at scheduled departure; delayed means arriving 15 minutes late or more",
    ("carrier", "weather"),
    (
        ("carrier", _text),
        ("weather", _text),
        ("carrier_name", _text),
        ("flights", _long),
        ("cancelled", _long),
        ("arrived", _long),
        ("delayed", _long),
        ("delayed_share", _double),
        ("mean_departure_delay_minutes", _double),
        ("mean_arrival_delay_minutes", _double),
    ),
)

AIRCRAFT_UTILISATION = _keyed(
    "gold.aircraft_utilisation",
    "what each aircraft did in each month, counted on flights that arrived",
    ("tail_number", "month"),
    (
        ("tail_number", _text),
        ("month", _date),
        ("manufacturer", _text),
        ("model", _text),
        ("seats", _int),
        ("flights", _long),
        ("days_in_service", _long),
        ("air_time_minutes", _long),
        ("distance_miles", _long),
        ("seat_miles", _long),
        ("air_hours_per_day_in_service", _double),
    ),
)

QUALITY_RESULTS = _keyed(
    "ops.quality_results",
    "every expectation of every delivery: what was checked, how many rows violated it, what followed",
    ("delivery", "dataset", "expectation"),
    (
        ("delivery", _text),
        ("dataset", _text),
        ("expectation", _text),
        ("description", _text),
        ("severity", _text),
        ("rows_checked", _long),
        ("violations", _long),
        ("tolerated_share", _double),
        ("outcome", _text),
    ),
)

SILVER = (WEATHER, AIRCRAFT, FLIGHTS)
GOLD = (ROUTE_PUNCTUALITY, CARRIER_DELAYS_BY_WEATHER, AIRCRAFT_UTILISATION)
ALL = (*BRONZE.values(), *SILVER, *GOLD, QUALITY_RESULTS)
NAMESPACES = ("bronze", "silver", "gold", "ops")
