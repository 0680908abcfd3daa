//! Entries of the ABI's lists: a function, a constant, a struct.

/// Who calls a function: see `src/functions.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Every library must have it.
    Core,
    /// Some libraries lack it.
    Optional,
    /// Foreign programs only.
    Foreign,
}

/// A function. All return `hipError_t`.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Its C name.
    pub name: &'static str,
    /// Who calls it.
    pub tag: Tag,
    /// Name and Rust type of each argument.
    pub args: &'static [(&'static str, &'static str)],
}

/// A constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// The type it belongs to: a C enum, or a group of flags that C has no type for.
    pub group: &'static str,
    /// Its C name.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
}

/// A struct.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Its name here.
    pub name: &'static str,
    /// Its name in C.
    pub c_name: &'static str,
    /// Major versions of HIP whose headers have it, first and last.
    pub majors: (u32, u32),
    /// Bytes.
    pub size: usize,
    /// Each field this crate names: its name, its byte offset, its bytes.
    pub fields: &'static [(&'static str, usize, usize)],
}

/// A field's C name: without what Rust needs before its own words (`r#type`).
pub(crate) const fn c_field(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}
