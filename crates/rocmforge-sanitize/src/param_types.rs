//! Parameter types of kernels: which arguments are floats, and which integers.
//!
//! The metadata of a HIP kernel has sizes alone. The types are in the metadata of other languages, and in the symbol of a C++
//! kernel, whose encoding the ABI defines (Itanium C++ ABI, 5.1). Of a kernel that is `extern "C"` nobody knows them.

use crate::dtype::DType;
use rocmforge_code_object::KernelMeta;
use std::fmt::{self, Write};

/// Bytes of a symbol and of its text, at most: a few bytes can stand for a text without end.
const MAX_SYMBOL: usize = 4 << 10;
const MAX_TEXT: usize = 64 << 10;

/// The type of each explicit argument, where it is known and a number.
pub(crate) fn param_types(kernel: &KernelMeta) -> Vec<Option<DType>> {
    let count = kernel.explicit_args().count();
    let params = of_symbol(&kernel.name).filter(|params| params.len() == count);
    let params = params.unwrap_or_else(|| vec![None; count]);
    let args = kernel.explicit_args().zip(params);
    args.map(|(arg, of_symbol)| {
        let named = arg.type_name.as_deref().and_then(of_c);
        named.or(of_symbol).filter(|dtype| dtype.size() == arg.size as usize)
    })
    .collect()
}

/// A text of limited length.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_TEXT {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// The parameters of a mangled function name; none for any other name.
fn of_symbol(name: &str) -> Option<Vec<Option<DType>>> {
    if !name.starts_with("_Z") || name.len() > MAX_SYMBOL {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let mut text = Limited(String::new());
    symbol
        .structured_demangle(&mut text, &cpp_demangle::DemangleOptions::new().no_return_type())
        .ok()?;
    let inside = text.0.strip_suffix(')')?;
    // The parameters' own parenthesis: those of types inside of it are closed again.
    let mut depth = 1;
    let open = inside.rfind(|c| {
        depth += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    let mut params = vec![String::new()];
    let mut depth = 0;
    for c in inside[open + 1..].chars() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                params.push(String::new());
                continue;
            }
            _ => {}
        }
        params.last_mut()?.push(c);
    }
    Some(params.iter().map(|param| of_c(param.trim())).collect())
}

/// A C type that is a number, as the card has it: `long` has 64 bits, `char` a sign.
fn of_c(name: &str) -> Option<DType> {
    Some(match name {
        "char" | "signed char" => DType::I8,
        "unsigned char" | "uchar" => DType::U8,
        "short" => DType::I16,
        "unsigned short" | "ushort" => DType::U16,
        "int" => DType::I32,
        "unsigned int" | "unsigned" | "uint" => DType::U32,
        "long" | "long long" => DType::I64,
        "unsigned long" | "unsigned long long" | "ulong" => DType::U64,
        "_Float16" | "half" => DType::F16,
        "__bf16" | "std::bfloat16_t" => DType::Bf16,
        "float" => DType::F32,
        "double" => DType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_tell_the_types_of_their_parameters() {
        use DType::*;
        // Symbols as clang writes them for the declarations beside them.
        for (symbol, params) in [
            ("_Z5scalePKfPfjf", vec![None, None, Some(U32), Some(F32)]), // scale(const float*, float*, unsigned, float)
            ("_Z1fiPFvifEd", vec![Some(I32), None, Some(F64)]),          // f(int, void (*)(int, float), double)
            ("_Z1gIfEvPT_lx", vec![None, Some(I64), Some(I64)]),         // g<float>(float*, long, long long)
            ("_Z1hDF16_hs", vec![Some(F16), Some(U8), Some(I16)]),       // h(_Float16, unsigned char, short)
        ] {
            assert_eq!(of_symbol(symbol), Some(params), "{symbol}");
        }
        for symbol in ["scale", "_Z", "_Zx", "_Z99f"] {
            assert_eq!(of_symbol(symbol), None, "{symbol}");
        }
    }

    #[test]
    fn no_symbol_takes_for_ever() {
        // Each substitution doubles what came before it.
        let mut bomb = "_Z1fSt4pairIiiE".to_owned();
        for n in 0..30 {
            bomb.push_str(&format!("St4pairIS{}_S{}_E", n, n));
        }
        let start = std::time::Instant::now();
        let _ = of_symbol(&bomb);
        assert!(start.elapsed() < std::time::Duration::from_secs(5));
    }
}
