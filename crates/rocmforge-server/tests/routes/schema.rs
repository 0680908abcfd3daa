//! Checker of JSON against the part of JSON Schema that the description uses.

use serde_json::Value;

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the type {other} is not known here"),
    }
}

/// Why a value is not what the schema says; `None` if it is.
pub(crate) fn fault(all: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let known = [
        "$ref",
        "type",
        "enum",
        "anyOf",
        "minimum",
        "maximum",
        "minItems",
        "items",
        "properties",
        "required",
        "additionalProperties",
        "description",
    ];
    let schema = schema.as_object().expect("an object");
    if let Some(keyword) = schema.keys().find(|keyword| !known.contains(&keyword.as_str())) {
        panic!("the keyword {keyword} is not known here");
    }
    let wrong = |what: &str| Some(format!("{place}: {value} is not {what}"));
    if let Some(place_of) = schema.get("$ref") {
        let pointer = place_of.as_str().expect("a text").trim_start_matches('#');
        return fault(all, all.pointer(pointer).expect("it is there"), value, place);
    }
    if let Some(kinds) = schema.get("type") {
        let kinds = kinds.as_array().cloned().unwrap_or_else(|| vec![kinds.clone()]);
        if !kinds.iter().any(|kind| is_of(value, kind.as_str().expect("a text"))) {
            return wrong(&format!("one of {kinds:?}"));
        }
    }
    if let Some(values) = schema.get("enum") {
        let same = |other: &Value| other == value || (other.is_number() && other.as_f64() == value.as_f64());
        if !values.as_array().expect("a list").iter().any(same) {
            return wrong(&format!("one of {values}"));
        }
    }
    if let Some(any) = schema.get("anyOf") {
        let faults = any.as_array().expect("a list").iter();
        let faults: Option<Vec<String>> = faults.map(|one| fault(all, one, value, place)).collect();
        if let Some(faults) = faults {
            return Some(faults.join(" or "));
        }
    }
    if let Some(number) = value.as_f64() {
        if schema
            .get("minimum")
            .and_then(Value::as_f64)
            .is_some_and(|least| number < least)
        {
            return wrong("large enough");
        }
        if schema
            .get("maximum")
            .and_then(Value::as_f64)
            .is_some_and(|most| number > most)
        {
            return wrong("small enough");
        }
    }
    if let Some(items) = value.as_array() {
        if schema
            .get("minItems")
            .and_then(Value::as_u64)
            .is_some_and(|least| (items.len() as u64) < least)
        {
            return wrong("long enough");
        }
        if let Some(each) = schema.get("items") {
            let mut numbered = items.iter().enumerate();
            return numbered.find_map(|(index, item)| fault(all, each, item, &format!("{place}/{index}")));
        }
    }
    let object = value.as_object()?;
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !object.contains_key(name.as_str().expect("a text")) {
            return wrong(&format!("with {name}"));
        }
    }
    object.iter().find_map(|(name, value)| {
        let place = format!("{place}/{name}");
        match (
            properties.and_then(|known| known.get(name)),
            schema.get("additionalProperties"),
        ) {
            (Some(property), _) => fault(all, property, value, &place),
            (None, Some(Value::Bool(false))) => Some(format!("{place} is not in the description")),
            (None, Some(other)) if other.is_object() => fault(all, other, value, &place),
            (None, _) => None,
        }
    })
}
