//! Parameters of ops as JSON objects, for graph files and signatures.
//!
//! An f32 is a number, which keeps every bit of a finite one; the others are the texts `inf`, `-inf` and
//! `nan:` with the 32 bits in hexadecimal.

use serde_json::{Map, Value, json};

use crate::{AttentionMask, DType, MAX_DIMS, SortOrder};

/// What is wrong with a node's op or one of its parameters.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No op of ours has this name.
    Op,
    /// A parameter is missing, superfluous or of another kind.
    Parameter { name: String, rule: &'static str },
}

/// The parameters of one node.
pub(super) struct Reader<'a>(pub(super) Option<&'a Map<String, Value>>);

impl Reader<'_> {
    pub(super) fn get<T>(
        &self,
        name: &str,
        rule: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, Fault> {
        let value = self.0.and_then(|params| params.get(name));
        value.and_then(read).ok_or_else(|| Fault::Parameter {
            name: name.to_owned(),
            rule,
        })
    }
}

/// A parameter, or a structure of some.
pub(super) trait Parameter: Sized {
    fn write(&self, name: &'static str, to: &mut Map<String, Value>);
    fn read(name: &'static str, from: &Reader<'_>) -> Result<Self, Fault>;
}

/// One value.
trait Single: Sized {
    /// What it must be, as messages say it.
    const RULE: &'static str;
    fn value(&self) -> Value;
    fn of(value: &Value) -> Option<Self>;
}

impl<T: Single> Parameter for T {
    fn write(&self, name: &'static str, to: &mut Map<String, Value>) {
        to.insert(name.to_owned(), self.value());
    }

    fn read(name: &'static str, from: &Reader<'_>) -> Result<Self, Fault> {
        from.get(name, T::RULE, T::of)
    }
}

macro_rules! singles {
    ($($kind:ty, $rule:literal, |$own:ident| $value:expr, |$json:ident| $of:expr;)*) => {
        $(impl Single for $kind {
            const RULE: &'static str = $rule;

            fn value(&self) -> Value {
                let $own = *self;
                json!($value)
            }

            fn of($json: &Value) -> Option<Self> {
                $of
            }
        })*
    };
}

singles! {
    usize, "it must be a whole number that is not negative", |n| n, |value| usize::try_from(value.as_u64()?).ok();
    bool, "it must be true or false", |flag| flag, |value| value.as_bool();
    f32, "it must be a number of 32 bits, or `inf`, `-inf`, `nan:` and its bits", |x| float(x), |value| as_float(value);
    DType, "it must be a type of tensors", |dtype| dtype.to_string(),
        |value| member(DType::ALL, |dtype| dtype.to_string(), value.as_str()?);
    SortOrder, "it must be true or false", |order| order == SortOrder::Descending,
        |value| Some(if value.as_bool()? { SortOrder::Descending } else { SortOrder::Ascending });
    AttentionMask, "it must be true or false", |mask| mask == AttentionMask::Additive,
        |value| Some(if value.as_bool()? { AttentionMask::Additive } else { AttentionMask::None });
    [usize; 2], "it must be two whole numbers", |all| all,
        |value| value.as_array()?.iter().map(Single::of).collect::<Option<Vec<usize>>>()?.try_into().ok();
    [usize; MAX_DIMS], "it must be four whole numbers", |all| all,
        |value| value.as_array()?.iter().map(Single::of).collect::<Option<Vec<usize>>>()?.try_into().ok();
}

impl<T: Single> Single for Option<T> {
    const RULE: &'static str = "it must be null or a value of its kind";

    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::value)
    }

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::of(value).map(Some),
        }
    }
}

/// Structures of parameters, each of which has the name of its field.
macro_rules! structures {
    ($($kind:ident { $($field:ident),* })*) => {
        $(impl Parameter for $kind {
            fn write(&self, _: &'static str, to: &mut Map<String, Value>) {
                $(self.$field.write(stringify!($field), to);)*
            }

            fn read(_: &'static str, from: &Reader<'_>) -> Result<Self, Fault> {
                Ok(Self { $($field: Parameter::read(stringify!($field), from)?,)* })
            }
        })*
    };
}

pub(super) use structures;

/// Alternatives: a word says which, the parameters of each are beside it.
macro_rules! alternatives {
    ($kind:ident, $key:literal, $rule:literal: $($word:literal $variant:ident { $($field:tt: $parameter:ident),* })*) => {
        impl Parameter for $kind {
            fn write(&self, _: &'static str, to: &mut Map<String, Value>) {
                match self {
                    $(Self::$variant { $($field: $parameter),* } => {
                        to.insert($key.to_owned(), json!($word));
                        $($parameter.write(stringify!($parameter), to);)*
                    })*
                }
            }

            fn read(_: &'static str, from: &Reader<'_>) -> Result<Self, Fault> {
                let word = from.get($key, $rule, |value| [$($word),*].into_iter().find(|word| value.as_str() == Some(word)))?;
                $(if word == $word {
                    return Ok(Self::$variant { $($field: Parameter::read(stringify!($parameter), from)?),* });
                })*
                Err(Fault::Op)
            }
        }
    };
}

pub(super) use alternatives;

fn float(x: f32) -> Value {
    if x.is_finite() {
        json!(f64::from(x))
    } else if x.is_nan() {
        json!(format!("nan:{:08x}", x.to_bits()))
    } else {
        json!(if x > 0.0 { "inf" } else { "-inf" })
    }
}

fn as_float(value: &Value) -> Option<f32> {
    match value {
        Value::Number(number) => {
            // Rounding takes away what reading the decimal number may have added beyond 24 bits.
            let x = number.as_f64()? as f32;
            x.is_finite().then_some(x)
        }
        Value::String(text) => match text.as_str() {
            "inf" => Some(f32::INFINITY),
            "-inf" => Some(f32::NEG_INFINITY),
            text => {
                let bits = u32::from_str_radix(text.strip_prefix("nan:")?, 16).ok()?;
                Some(f32::from_bits(bits)).filter(|x| x.is_nan())
            }
        },
        _ => None,
    }
}

/// What has a name.
pub(super) fn member<T: Copy, N: AsRef<str>>(
    all: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> N,
    wanted: &str,
) -> Option<T> {
    all.into_iter().find(|&one| name(one).as_ref() == wanted)
}
