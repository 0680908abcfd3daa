//! Schemas, in short: what the tables of fields and of answers are made of.

use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

pub(crate) type Described = RefOr<Schema>;

fn of(schema_type: impl Into<SchemaType>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(schema_type)
}

/// A value of one type.
pub(crate) fn one(kind: Type) -> Described {
    of(kind).into()
}

/// A value of one type, or null.
pub(crate) fn or_null(kind: Type) -> Described {
    of(SchemaType::Array(vec![kind, Type::Null])).into()
}

pub(crate) fn text() -> Described {
    one(Type::String)
}

pub(crate) fn flag() -> Described {
    one(Type::Boolean)
}

pub(crate) fn number() -> Described {
    one(Type::Number)
}

/// A whole number, not negative.
pub(crate) fn count() -> Described {
    at_least(Type::Integer, 0, false)
}

/// A number of at least so much, or null if it may be.
pub(crate) fn at_least(kind: Type, least: i64, or_null: bool) -> Described {
    let kinds = match or_null {
        true => SchemaType::Array(vec![kind, Type::Null]),
        false => kind.into(),
    };
    of(kinds).minimum(Some(least as f64)).into()
}

/// Any value.
pub(crate) fn any() -> Described {
    of(SchemaType::AnyValue).into()
}

/// One of these values.
pub(crate) fn values(values: impl IntoIterator<Item = impl Into<Value>>) -> Described {
    let values = values.into_iter().map(Into::<Value>::into);
    of(SchemaType::AnyValue).enum_values(Some(values)).into()
}

/// A list.
pub(crate) fn list(items: Described) -> Described {
    ArrayBuilder::new().items(items).into()
}

/// A list of at least one item.
pub(crate) fn filled(items: Described) -> Described {
    ArrayBuilder::new().items(items).min_items(Some(1)).into()
}

/// A value of one of these.
pub(crate) fn either(items: impl IntoIterator<Item = Described>) -> Described {
    let builder = items.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
    builder.into()
}

/// An object whose values are all of this kind.
pub(crate) fn map(values: Described) -> Described {
    of(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(values)))
        .into()
}

/// An object with these properties, which must be there, and with others if it is `open`.
pub(crate) fn object<'a>(
    required: impl IntoIterator<Item = (&'a str, Described)>,
    optional: impl IntoIterator<Item = (&'a str, Described)>,
    open: bool,
) -> Described {
    let mut builder = of(Type::Object);
    for (name, described) in required {
        builder = builder.property(name, described).required(name);
    }
    for (name, described) in optional {
        builder = builder.property(name, described);
    }
    if !open {
        builder = builder.additional_properties(Some(AdditionalProperties::FreeForm(false)));
    }
    builder.into()
}

/// An answer: an object with these properties and no others.
pub(crate) fn whole<'a>(required: impl IntoIterator<Item = (&'a str, Described)>) -> Described {
    object(required, [], false)
}

/// A schema of the description's components.
pub(crate) fn named(name: &str) -> Described {
    Ref::from_schema_name(name).into()
}

/// The same with a description.
pub(crate) fn about(described: Described, text: &str) -> Described {
    match described {
        RefOr::T(Schema::Object(mut object)) => {
            object.description = Some(text.to_owned());
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.description = Some(text.to_owned());
            array.into()
        }
        RefOr::T(Schema::AnyOf(mut any)) => {
            any.description = Some(text.to_owned());
            RefOr::T(Schema::AnyOf(any))
        }
        other => other,
    }
}
