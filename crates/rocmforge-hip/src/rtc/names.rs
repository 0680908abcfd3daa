//! Lowered names: the symbols of kernels and variables that expressions name.
//!
//! A code object has a variable for each expression, with a relocation that says which address goes there; the symbol at that
//! address is the lowered name.

use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SymbolKind};
use std::ffi::CString;

/// The start of the variables' names; the index of the expression follows.
pub(super) const SYMBOL: &str = "__rocmforge_name_";

/// Why an expression has no lowered name.
#[derive(Debug, thiserror::Error)]
pub(super) enum NameError {
    #[error("the code object cannot be read: {0}")]
    Object(#[from] object::Error),
    #[error("the name expression {0} names no kernel and no variable of the program")]
    Unknown(usize),
}

/// The symbols of the first `count` expressions of a code object.
pub(super) fn lowered(code: &[u8], count: usize) -> Result<Vec<CString>, NameError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let file = object::File::parse(code)?;
    let relocations: Vec<_> = file.dynamic_relocations().into_iter().flatten().collect();
    let one = |index: usize| {
        let variable = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(format!("{SYMBOL}{index}").as_str()))?;
        let (_, relocation) = relocations.iter().find(|(at, _)| *at == variable.address())?;
        let base = match relocation.target() {
            RelocationTarget::Symbol(symbol) => file.dynamic_symbol_table()?.symbol_by_index(symbol).ok()?.address(),
            _ => 0,
        };
        let address = base.wrapping_add_signed(relocation.addend());
        let is_it = |symbol: &object::Symbol<'_, '_>| {
            symbol.address() == address && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data)
        };
        let found = file.dynamic_symbols().find(is_it)?;
        CString::new(found.name_bytes().ok()?).ok()
    };
    (0..count)
        .map(|index| one(index).ok_or(NameError::Unknown(index)))
        .collect()
}
