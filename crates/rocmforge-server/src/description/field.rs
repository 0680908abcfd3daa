//! Fields of requests: the tables by which requests are described, and which their reader must agree with.
//!
//! Each module that reads fields has its table beside the reader. In builds with debug assertions, [`crate::fields::Fields`] looks up every field that
//! it reads; a test gives each described field a wrong value, which must be refused. So neither can have a field that the other lacks.

use serde_json::json;
use utoipa::openapi::schema::Type;

use super::schema::{self, Described};

/// How a field is read.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Bool,
    Text,
    /// A text or a list of texts.
    Texts,
    List,
    Object,
    Number,
    Integer,
    /// A whole number of at least so many.
    Count(usize),
    /// A number of tokens; -1 is no limit.
    Tokens,
    /// It is taken only if it asks for nothing.
    Refused,
    /// As the schema says; the module reads it by hand.
    Other(fn() -> Described),
}

impl Form {
    pub(crate) fn described(self) -> Described {
        match self {
            Self::Bool => schema::or_null(Type::Boolean),
            Self::Text => schema::or_null(Type::String),
            Self::Texts => schema::either([schema::or_null(Type::String), schema::list(schema::text())]),
            Self::List => schema::either([schema::list(schema::any()), schema::one(Type::Null)]),
            Self::Object => schema::or_null(Type::Object),
            Self::Number => schema::or_null(Type::Number),
            Self::Integer => schema::or_null(Type::Integer),
            Self::Count(least) => schema::at_least(Type::Integer, i64::try_from(least).unwrap_or(i64::MAX), true),
            Self::Tokens => schema::at_least(Type::Integer, -1, true),
            Self::Refused => schema::values([json!(null), json!(false), json!(0), json!(""), json!([]), json!({})]),
            Self::Other(described) => described(),
        }
    }

    /// Whether a reader of this form may read the field.
    fn is_read_as(self, reader: Reader) -> bool {
        matches!(
            (self, reader),
            (_, Reader::Any)
                | (Self::Other(_), _)
                | (Self::Bool, Reader::Bool)
                | (Self::Text, Reader::Text)
                | (Self::Texts, Reader::Texts)
                | (Self::List, Reader::List)
                | (Self::Object, Reader::Object)
                | (Self::Number, Reader::Number)
                | (Self::Integer | Self::Count(_) | Self::Tokens, Reader::Integer)
                | (Self::Refused, Reader::Refused)
        )
    }
}

/// The readers of [`crate::fields::Fields`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Any,
    Bool,
    Text,
    Texts,
    List,
    Object,
    Number,
    Integer,
    Refused,
}

/// A field: its name, how it is read, what it is for.
pub(crate) struct Field(pub(crate) &'static str, pub(crate) Form, pub(crate) &'static str);

/// Fields that belong together.
#[derive(Clone, Copy)]
pub(crate) enum Group {
    Read(&'static [Field]),
    /// Fields that change an answer and are not there.
    Refused(&'static [&'static str]),
    /// The groups of another table.
    All(&'static [Group]),
}

impl Group {
    fn forms(&self) -> Vec<(&'static str, Form, &'static str)> {
        match self {
            Self::Read(fields) => fields.iter().map(|field| (field.0, field.1, field.2)).collect(),
            Self::Refused(names) => {
                let text = "Not supported: a value that asks for something is an error.";
                names.iter().map(|name| (*name, Form::Refused, text)).collect()
            }
            Self::All(groups) => groups.iter().flat_map(Self::forms).collect(),
        }
    }
}

/// All fields of a request. Where two groups have one name, the first describes it.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    pub(crate) groups: &'static [Group],
    /// Fields that must be there.
    pub(crate) required: &'static [&'static str],
}

impl Body {
    fn forms(&self) -> impl Iterator<Item = (&'static str, Form, &'static str)> {
        self.groups.iter().flat_map(Group::forms)
    }

    /// Whether a reader may read a field.
    pub(crate) fn has(&self, name: &str, reader: Reader) -> bool {
        self.forms()
            .any(|(known, form, _)| known == name && form.is_read_as(reader))
    }

    /// The schema of the request. Other fields are taken and not read.
    pub(crate) fn described(&self) -> Described {
        let mut names: Vec<&str> = Vec::new();
        let mut properties = Vec::new();
        for (name, form, text) in self.forms() {
            if !names.contains(&name) {
                names.push(name);
                properties.push((name, schema::about(form.described(), text)));
            }
        }
        let (required, optional): (Vec<_>, Vec<_>) = properties
            .into_iter()
            .partition(|(name, _)| self.required.contains(name));
        schema::object(required, optional, true)
    }
}
