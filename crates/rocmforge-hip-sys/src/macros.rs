//! Declarations of the types: handles, constants and structs, so that each list is also data for [`crate::abi`].

macro_rules! handles {
    ($($(#[$doc:meta])* $opaque:ident => $name:ident;)*) => {$(
        #[doc(hidden)]
        #[repr(C)]
        pub struct $opaque {
            _private: [u8; 0],
        }
        $(#[$doc])*
        pub type $name = *mut $opaque;
    )*};
}

macro_rules! constants {
    ($($(#[$doc:meta])* $ty:ident: $repr:ty { $($name:ident = $value:literal,)* })*) => {$(
        $(#[$doc])*
        pub type $ty = $repr;
        $(#[doc = concat!("`", stringify!($name), "` (", stringify!($value), ").")]
        pub const $name: $ty = $value;)*
    )*

        /// Every constant above, as data: type, name, value.
        pub(crate) const CONSTANTS: &[(&str, &str, u64)] = &[$($((stringify!($ty), stringify!($name), $value),)*)*];
    };
}

/// What a field's documentation says, if it has any; else its C name.
macro_rules! field_doc {
    ($field:ident) => {
        concat!("`", stringify!($field), "`, as C has it.")
    };
    ($field:ident $about:literal) => {
        $about
    };
}

/// Structs whose every field has its C name and type: `name: C name, first and last major version of HIP { fields }`.
macro_rules! structs {
    ($($(#[$doc:meta])* $name:ident: $c_name:literal, $first:expr, $last:expr => { $($(#[doc = $about:literal])? $field:ident: $ty:ty,)* })*) => {
        $($(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $(#[doc = $crate::macros::field_doc!($field $($about)?)]
            pub $field: $ty,)*
        })*

        /// Every struct above, as data.
        pub(crate) const LAYOUTS: &[$crate::abi::entries::Layout] = &[$($crate::abi::entries::Layout {
            name: stringify!($name),
            c_name: $c_name,
            majors: ($first, $last),
            size: ::std::mem::size_of::<$name>(),
            fields: &[$(($crate::abi::entries::c_field(stringify!($field)), ::std::mem::offset_of!($name, $field), ::std::mem::size_of::<$ty>()),)*],
        }),*];
    };
}

pub(crate) use {constants, field_doc, handles, structs};
