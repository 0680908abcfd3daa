//! Metadata values: the thirteen value types of GGUF, and arrays of them.

use std::fmt;

macro_rules! value_types {
    ($($variant:ident($ty:ty) = $id:literal, $name:literal, $bytes:literal;)*) => {
        /// The type of a metadata value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum ValueType {
            $(#[doc = concat!("`", $name, "`.")] $variant = $id,)*
            /// An array of one of the other types.
            Array = 9,
        }

        impl ValueType {
            /// The type with this id, or `None`.
            pub const fn from_id(id: u32) -> Option<ValueType> {
                match id {
                    $($id => Some(ValueType::$variant),)*
                    9 => Some(ValueType::Array),
                    _ => None,
                }
            }

            /// The id that stands in the file.
            pub const fn id(self) -> u32 {
                self as u32
            }

            /// The name of the type, such as `u32`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ValueType::$variant => $name,)*
                    ValueType::Array => "array",
                }
            }

            /// The fewest bytes a value of this type takes in the file: its size, or the size of the length for a
            /// string, or of element type and length for an array.
            pub const fn least_bytes(self) -> usize {
                match self {
                    $(ValueType::$variant => $bytes,)*
                    ValueType::Array => 12,
                }
            }
        }

        /// One metadata value.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Value {
            $(#[doc = concat!("A `", $name, "`.")] $variant($ty),)*
            /// An array.
            Array(Array),
        }

        /// A metadata array: all elements have one type. Arrays of arrays are refused.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Array {
            $(#[doc = concat!("Elements of type `", $name, "`.")] $variant(Vec<$ty>),)*
        }

        impl Value {
            /// The value's type.
            pub const fn value_type(&self) -> ValueType {
                match self {
                    $(Value::$variant(_) => ValueType::$variant,)*
                    Value::Array(_) => ValueType::Array,
                }
            }
        }

        impl Array {
            /// The elements' type.
            pub const fn value_type(&self) -> ValueType {
                match self {
                    $(Array::$variant(_) => ValueType::$variant,)*
                }
            }

            /// The number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Array::$variant(items) => items.len(),)*
                }
            }
        }

        $(
            impl From<$ty> for Value {
                fn from(value: $ty) -> Value {
                    Value::$variant(value)
                }
            }

            impl From<Vec<$ty>> for Value {
                fn from(items: Vec<$ty>) -> Value {
                    Value::Array(Array::$variant(items))
                }
            }
        )*
    };
}

// id, name, least bytes in the file. Id 9 is the array.
value_types! {
    U8(u8) = 0, "u8", 1;
    I8(i8) = 1, "i8", 1;
    U16(u16) = 2, "u16", 2;
    I16(i16) = 3, "i16", 2;
    U32(u32) = 4, "u32", 4;
    I32(i32) = 5, "i32", 4;
    F32(f32) = 6, "f32", 4;
    Bool(bool) = 7, "bool", 1;
    String(String) = 8, "string", 8;
    U64(u64) = 10, "u64", 8;
    I64(i64) = 11, "i64", 8;
    F64(f64) = 12, "f64", 8;
}

impl Array {
    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as integers, or `None` where they are no integers.
    pub fn integers(&self) -> Option<Vec<i128>> {
        fn widen<T: Copy + Into<i128>>(items: &[T]) -> Option<Vec<i128>> {
            Some(items.iter().map(|&item| item.into()).collect())
        }
        match self {
            Array::U8(items) => widen(items),
            Array::I8(items) => widen(items),
            Array::U16(items) => widen(items),
            Array::I16(items) => widen(items),
            Array::U32(items) => widen(items),
            Array::I32(items) => widen(items),
            Array::U64(items) => widen(items),
            Array::I64(items) => widen(items),
            Array::F32(_) | Array::F64(_) | Array::Bool(_) | Array::String(_) => None,
        }
    }
}

impl Value {
    /// The value as an integer, or `None` where it is none.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Value::U8(value) => value.into(),
            Value::I8(value) => value.into(),
            Value::U16(value) => value.into(),
            Value::I16(value) => value.into(),
            Value::U32(value) => value.into(),
            Value::I32(value) => value.into(),
            Value::U64(value) => value.into(),
            Value::I64(value) => value.into(),
            Value::F32(_) | Value::F64(_) | Value::Bool(_) | Value::String(_) | Value::Array(_) => return None,
        })
    }

    /// The type in words, with the element type and count of an array: `u32`, `array of 3 string`.
    pub fn describe_type(&self) -> String {
        match self {
            Value::Array(array) => format!("array of {} {}", array.len(), array.value_type()),
            value => value.value_type().name().to_string(),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.to_string())
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Array(array)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Value {
    /// The value; of an array only its type and length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::U8(value) => value.fmt(f),
            Value::I8(value) => value.fmt(f),
            Value::U16(value) => value.fmt(f),
            Value::I16(value) => value.fmt(f),
            Value::U32(value) => value.fmt(f),
            Value::I32(value) => value.fmt(f),
            Value::F32(value) => value.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::String(value) => value.fmt(f),
            Value::U64(value) => value.fmt(f),
            Value::I64(value) => value.fmt(f),
            Value::F64(value) => value.fmt(f),
            Value::Array(_) => f.write_str(&self.describe_type()),
        }
    }
}
