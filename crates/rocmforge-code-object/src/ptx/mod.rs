//! PTX, NVIDIA's assembly text: the parameters of each kernel, read into the same [`KernelMeta`] as AMD's notes.
//!
//! Only what stands in the text is known: registers and spills are the driver's business, and are 0 here. The language:
//! *Parallel Thread Execution ISA*, chapters 4 (syntax), 7.1 (functions) and 11 (directives).

mod token;

use crate::error::limit;
use crate::{ArgKind, ArgMeta, KernelMeta, ParseError, Target};
use token::{Token, Tokens};

/// A real module of this project has half a megabyte.
const MAX_BYTES: usize = 64 << 20;
/// The driver takes 4096 bytes of parameters, 32764 since CUDA 12.1.
const MAX_PARAMETER_BYTES: u32 = 32_764;
/// What a launch may have when the kernel does not say.
const MAX_THREADS: u32 = 1024;

/// Whether the bytes are PTX: comments, then `.version`.
pub(crate) fn is_ptx(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    let code = head
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && !line.starts_with(b"//"));
    code.is_some_and(|line| line.starts_with(b".version"))
}

/// Reads a module: its target and kernels. A NUL byte may end it, as the driver wants.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Target, Vec<KernelMeta>), ParseError> {
    limit("bytes of PTX", bytes.len(), MAX_BYTES)?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let text = str::from_utf8(&bytes[..end]).map_err(|error| ParseError::Ptx {
        line: 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count(),
        reason: "not text".to_owned(),
    })?;
    Module::default().read(Tokens::new(text))
}

/// A `.shared` variable outside of every function: clang puts all of them there.
struct Shared<'a> {
    name: &'a str,
    bytes: u32,
}

#[derive(Default)]
struct Module<'a> {
    target: Option<Target>,
    address_size: Option<u32>,
    shared: Vec<Shared<'a>>,
    kernels: Vec<KernelMeta>,
}

impl<'a> Module<'a> {
    fn read(mut self, mut tokens: Tokens<'a>) -> Result<(Target, Vec<KernelMeta>), ParseError> {
        while let Some(token) = tokens.next()? {
            match token {
                Token::Word(".target") => self.target = Some(target(&mut tokens)?),
                Token::Word(".address_size") => self.address_size = Some(tokens.number()?),
                Token::Word(".shared") => self.shared.push(shared(&mut tokens)?),
                Token::Word(".entry") => {
                    let kernel = kernel(&mut tokens, &self.shared)?;
                    if self.kernels.iter().any(|other| other.name == kernel.name) {
                        return Err(tokens.error(format!("kernel {:?} a second time", kernel.name)));
                    }
                    self.kernels.push(kernel);
                }
                // The body of a device function, or an initialiser.
                Token::Mark('{') => {
                    tokens.block(|_| ())?;
                }
                _ => {}
            }
        }
        let Some(target) = self.target else {
            return Err(tokens.error("no .target".to_owned()));
        };
        if self.address_size != Some(64) {
            return Err(tokens.error("no .address_size 64: 32-bit addresses are not supported".to_owned()));
        }
        Ok((target, self.kernels))
    }
}

/// `.target sm_75, debug`: the processor is the first word.
fn target(tokens: &mut Tokens<'_>) -> Result<Target, ParseError> {
    let arch = tokens.word()?;
    let number = arch.strip_prefix("sm_").unwrap_or_default();
    // `sm_90a` runs on that one processor only, which its name tells.
    let digits = number.trim_end_matches(['a', 'f']);
    if digits.len() < 2 || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(tokens.error(format!("the target {arch:?} is no sm_<number>")));
    }
    Ok(Target {
        triple: format!("nvptx64-nvidia-cuda--{arch}"),
        arch: arch.to_owned(),
        ..Target::default()
    })
}

/// `.align 16 .b8 name[32]`, behind `.shared`.
fn shared<'a>(tokens: &mut Tokens<'a>) -> Result<Shared<'a>, ParseError> {
    let declared = declaration(tokens)?;
    Ok(Shared {
        name: declared.name,
        bytes: declared.bytes,
    })
}

/// A variable or parameter: alignment and type, in any order, then the name and how many.
struct Declared<'a> {
    name: &'a str,
    bytes: u32,
    align: u32,
    /// Whether it says that it is a pointer (`.ptr`, which LLVM 20 and later write).
    pointer: bool,
    one_word: bool,
}

fn declaration<'a>(tokens: &mut Tokens<'a>) -> Result<Declared<'a>, ParseError> {
    let (mut align, mut size, mut pointer) = (None, None, false);
    let name = loop {
        match tokens.word()? {
            // The alignment behind `.ptr` is that of what it points to.
            ".align" if pointer => {
                tokens.number()?;
            }
            ".align" => align = Some(tokens.number()?),
            ".ptr" => pointer = true,
            ".u8" | ".s8" | ".b8" => size = Some(1),
            ".u16" | ".s16" | ".b16" | ".f16" => size = Some(2),
            ".u32" | ".s32" | ".b32" | ".f32" => size = Some(4),
            ".u64" | ".s64" | ".b64" | ".f64" => size = Some(8),
            ".b128" => size = Some(16),
            // Where a pointer points to.
            ".global" | ".const" | ".shared" | ".local" => {}
            word if word.starts_with('.') => return Err(tokens.error(format!("{word} in a declaration"))),
            name => break name,
        }
    };
    let Some(size) = size else {
        return Err(tokens.error(format!("{name} has no type")));
    };
    let mut bytes: u32 = size;
    let mut one_word = true;
    while tokens.take_if('[')? {
        one_word = false;
        // `name[]` is dynamic shared memory: the launch says how much.
        let count = if tokens.take_if(']')? {
            0
        } else {
            tokens.number_and(']')?
        };
        bytes = bytes
            .checked_mul(count)
            .ok_or_else(|| tokens.error(format!("{name} has more than 4 GiB")))?;
    }
    let align = align.unwrap_or(size);
    if !align.is_power_of_two() || align > 4096 {
        return Err(tokens.error(format!("{name} is aligned to {align}: no power of two to 4096")));
    }
    Ok(Declared {
        name,
        bytes,
        align,
        pointer,
        one_word,
    })
}

/// A kernel, behind `.entry`.
fn kernel<'a>(tokens: &mut Tokens<'a>, shared: &[Shared<'a>]) -> Result<KernelMeta, ParseError> {
    let name = tokens.word()?;
    let mut parameters = Vec::new();
    if tokens.take_if('(')? {
        while !tokens.take_if(')')? {
            match tokens.word()? {
                ".param" => parameters.push(declaration(tokens)?),
                other => return Err(tokens.error(format!("{other} where .param belongs"))),
            }
            tokens.take_if(',')?;
        }
    }
    let (mut most, mut required) = (None, None);
    while !tokens.take_if('{')? {
        match tokens.next()? {
            Some(Token::Word(".maxntid")) => most = Some(tokens.threads()?),
            Some(Token::Word(".reqntid")) => required = Some(tokens.threads()?),
            Some(_) => {}
            None => return Err(tokens.error(format!("kernel {name:?} has no body"))),
        }
    }
    let body = body(tokens, shared, &parameters)?;

    let mut args = Vec::with_capacity(parameters.len());
    let mut end = 0u32;
    for (index, parameter) in parameters.iter().enumerate() {
        let offset = end.next_multiple_of(parameter.align);
        end = offset.saturating_add(parameter.bytes);
        if end > MAX_PARAMETER_BYTES {
            return Err(tokens.error(format!(
                "kernel {name:?} has more than {MAX_PARAMETER_BYTES} bytes of parameters"
            )));
        }
        let pointer = parameter.one_word && parameter.bytes == 8 && (parameter.pointer || body.pointers[index]);
        args.push(ArgMeta {
            offset,
            size: parameter.bytes,
            kind: if pointer {
                ArgKind::GlobalPointer
            } else {
                ArgKind::Value
            },
            name: None,
            type_name: None,
            address_space: pointer.then(|| "global".to_owned()),
            is_const: false,
        });
    }
    let threads = |dims: [u32; 3]| dims.iter().try_fold(1u32, |product, &dim| product.checked_mul(dim));
    let max_workgroup_size = match required.or(most).map(threads) {
        None => MAX_THREADS,
        Some(Some(threads @ 1..=MAX_THREADS)) => threads,
        Some(_) => return Err(tokens.error(format!("kernel {name:?} wants blocks that no device has"))),
    };
    Ok(KernelMeta {
        name: name.to_owned(),
        symbol: name.to_owned(),
        kernarg_size: end,
        kernarg_align: 8,
        args,
        lds_size: body.shared,
        private_size: body.local,
        max_workgroup_size,
        wavefront_size: 32,
        required_workgroup_size: required,
        ..KernelMeta::default()
    })
}

/// What a kernel's body tells.
struct Body {
    /// Bytes of shared memory that it names, or may reach through a call.
    shared: u32,
    /// Bytes of a thread's stack.
    local: u32,
    /// Which parameters become addresses of global memory.
    pointers: Vec<bool>,
}

/// Reads a body up to its closing brace, behind the opening one.
fn body<'a>(tokens: &mut Tokens<'a>, outer: &[Shared<'a>], parameters: &[Declared<'a>]) -> Result<Body, ParseError> {
    let mut words: Vec<&str> = Vec::new();
    tokens.block(|token| {
        if let Token::Word(word) = token {
            words.push(word);
        }
    })?;
    let calls = words.iter().any(|word| *word == "call" || word.starts_with("call."));
    let mut shared: u32 = 0;
    for variable in outer {
        if calls || words.contains(&variable.name) {
            shared = shared.saturating_add(variable.bytes);
        }
    }
    let mut body = Body {
        shared,
        local: 0,
        pointers: vec![false; parameters.len()],
    };
    // Which parameter a register holds. Clang loads each once; a register that is written again is another value.
    let mut held: Vec<(&str, usize)> = Vec::new();
    for at in 0..words.len() {
        let (register, value) = match words[at..] {
            [".local", ..] | [".shared", ..] => {
                let bytes = array_bytes(&words[at..]);
                if words[at] == ".local" {
                    body.local = body.local.saturating_add(bytes);
                } else {
                    body.shared = body.shared.saturating_add(bytes);
                }
                continue;
            }
            [load, register, parameter, ..] if load.starts_with("ld.param") => (register, parameter),
            ["cvta.to.global.u64", _, source, ..] => {
                if let Some((_, index)) = held.iter().rev().find(|(register, _)| *register == source) {
                    body.pointers[*index] = true;
                }
                continue;
            }
            _ => continue,
        };
        if let Some(index) = parameters.iter().position(|parameter| parameter.name == value) {
            held.push((register, index));
        }
    }
    Ok(body)
}

/// `.local .align 16 .b8 name 32`: words of a declaration inside of a body, brackets left out.
fn array_bytes(words: &[&str]) -> u32 {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        match *word {
            ".align" => {
                words.next();
            }
            ".b8" => return words.nth(1).and_then(|count| count.parse().ok()).unwrap_or(0),
            _ => return 0,
        }
    }
    0
}

#[cfg(test)]
mod tests;
