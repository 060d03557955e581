//! Decoding of Arrow IPC schemas. The conversion of arrow-ipc panics on invalid types, so they are checked first.

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::{
    DateUnit, Endianness, Field, Int, IntervalUnit, Precision, Schema, TimeUnit, Type, UnionMode,
};

/// Converts a schema; the error describes the invalid field.
pub(crate) fn decode_schema(schema: Schema<'_>) -> Result<arrow_schema::Schema, String> {
    let fields = schema.fields().ok_or("schema without fields")?;
    for field in fields {
        if field.type_type() == Type::Decimal && schema.endianness() == Endianness::Big {
            return Err(invalid(field, "big-endian decimals are not supported"));
        }
        check(field).map_err(|(field, reason)| invalid(field, reason))?;
    }
    Ok(fb_to_schema(schema))
}

fn invalid(field: Field<'_>, reason: &str) -> String {
    format!("invalid type of column `{}`: {reason}", field.name().unwrap_or_default().escape_debug())
}

type Invalid<'a> = (Field<'a>, &'static str);

/// Checks the type of a field and of its children.
fn check(field: Field<'_>) -> Result<(), Invalid<'_>> {
    let is_valid = match field.dictionary() {
        Some(dictionary) => dictionary.indexType().is_some_and(is_int),
        None => true,
    };
    if !is_valid {
        return Err((field, "invalid dictionary index"));
    }
    let is_unit = |unit| {
        matches!(
            unit,
            TimeUnit::SECOND | TimeUnit::MILLISECOND | TimeUnit::MICROSECOND | TimeUnit::NANOSECOND
        )
    };
    let children = field.children().map_or(0, |children| children.len());
    let (is_valid, reason) = match field.type_type() {
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8
        | Type::Struct_ => (true, ""),
        Type::Int => (field.type_as_int().is_some_and(is_int), "invalid integer width"),
        Type::FixedSizeBinary => {
            (field.type_as_fixed_size_binary().is_some_and(|kind| kind.byteWidth() >= 0), "negative length")
        }
        Type::FloatingPoint => {
            let is_known =
                |precision| matches!(precision, Precision::HALF | Precision::SINGLE | Precision::DOUBLE);
            (
                field.type_as_floating_point().is_some_and(|kind| is_known(kind.precision())),
                "invalid precision",
            )
        }
        Type::Date => {
            let is_known = |unit| matches!(unit, DateUnit::DAY | DateUnit::MILLISECOND);
            (field.type_as_date().is_some_and(|kind| is_known(kind.unit())), "invalid date unit")
        }
        Type::Time => {
            let is_known = |width, unit| match unit {
                TimeUnit::SECOND | TimeUnit::MILLISECOND => width == 32,
                TimeUnit::MICROSECOND | TimeUnit::NANOSECOND => width == 64,
                _ => false,
            };
            (
                field.type_as_time().is_some_and(|kind| is_known(kind.bitWidth(), kind.unit())),
                "invalid time unit",
            )
        }
        Type::Timestamp => {
            (field.type_as_timestamp().is_some_and(|kind| is_unit(kind.unit())), "invalid timestamp unit")
        }
        Type::Duration => {
            (field.type_as_duration().is_some_and(|kind| is_unit(kind.unit())), "invalid duration unit")
        }
        Type::Interval => {
            let is_known = |unit| {
                matches!(
                    unit,
                    IntervalUnit::YEAR_MONTH | IntervalUnit::DAY_TIME | IntervalUnit::MONTH_DAY_NANO
                )
            };
            (field.type_as_interval().is_some_and(|kind| is_known(kind.unit())), "invalid interval unit")
        }
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => {
            (children == 1, "a list must have one child")
        }
        Type::FixedSizeList => {
            let is_known = field.type_as_fixed_size_list().is_some_and(|kind| kind.listSize() >= 0);
            (is_known && children == 1, "a list must have one child and a length")
        }
        Type::Map => (field.type_as_map().is_some() && children == 1, "a map must have one child"),
        Type::RunEndEncoded => (children == 2, "a run-end encoded field must have two children"),
        Type::Decimal => {
            let fits = field.type_as_decimal().is_some_and(|kind| {
                let is_known = matches!(kind.bitWidth(), 32 | 64 | 128 | 256);
                is_known && u8::try_from(kind.precision()).is_ok() && i8::try_from(kind.scale()).is_ok()
            });
            (fits, "invalid decimal width, precision or scale")
        }
        Type::Union => (is_union(field, children), "invalid union"),
        _ => (false, "unknown type"),
    };
    if !is_valid {
        return Err((field, reason));
    }
    field.children().into_iter().flatten().try_for_each(check)
}

fn is_int(int: Int<'_>) -> bool {
    matches!(int.bitWidth(), 8 | 16 | 32 | 64)
}

/// Whether the type IDs of a union are distinct numbers from 0 to 127, one for each child.
fn is_union(field: Field<'_>, children: usize) -> bool {
    const IDS: usize = 128;
    let Some(union) = field.type_as_union() else { return false };
    if !matches!(union.mode(), UnionMode::Dense | UnionMode::Sparse) || children > IDS {
        return false;
    }
    let Some(ids) = union.typeIds() else { return true };
    let mut seen = [false; IDS];
    let is_new = |id: i32| {
        let seen = usize::try_from(id).ok().and_then(|id| seen.get_mut(id));
        seen.is_some_and(|seen| !std::mem::replace(seen, true))
    };
    ids.len() == children && ids.iter().all(is_new)
}
