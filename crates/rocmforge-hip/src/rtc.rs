//! hiprtc: programs compile kernels while they run. An installed clang does the work, see [`compiler`].
//!
//! Handles are numbers of a table, so that one that was destroyed, or never given out, is an error and not an access.

mod compiler;
mod device_library;
mod names;
mod program;
mod rocm;

use crate::process;
use crate::text::text;
use compiler::Target;
use parking_lot::Mutex;
use program::Program;
use rocmforge_sim::enter_library;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `hiprtcResult`.
type Status = c_int;
const SUCCESS: Status = 0;
const INVALID_INPUT: Status = 3;
const INVALID_PROGRAM: Status = 4;
const COMPILATION: Status = 6;
const NO_NAMES_AFTER_COMPILATION: Status = 8;
const NO_LOWERED_NAMES_BEFORE_COMPILATION: Status = 9;
const NAME_NOT_VALID: Status = 10;
const INTERNAL: Status = 11;

/// Programs by their handles.
static PROGRAMS: Mutex<(usize, BTreeMap<usize, Program>)> = Mutex::new((0, BTreeMap::new()));

/// A panic must not leave through a C function: that would end the program.
fn guarded(body: impl FnOnce() -> Status) -> Status {
    let Some(_inside) = enter_library() else {
        let _ = process::refuse();
        return INTERNAL;
    };
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(INTERNAL)
}

/// Does something with the program of a handle.
fn with_program(handle: *mut c_void, body: impl FnOnce(&mut Program) -> Status) -> Status {
    guarded(|| match PROGRAMS.lock().1.get_mut(&handle.addr()) {
        Some(program) => body(program),
        None => INVALID_PROGRAM,
    })
}

/// # Safety
/// `array` is null or has `count` elements, each null or a text.
unsafe fn texts<'a>(array: *const *const c_char, count: c_int) -> Option<Vec<&'a CStr>> {
    let count = usize::try_from(count).ok()?;
    if count == 0 {
        return Some(Vec::new());
    }
    if array.is_null() {
        return None;
    }
    // SAFETY: promised by the caller; not null.
    let array = unsafe { std::slice::from_raw_parts(array, count) };
    // SAFETY: promised by the caller.
    array.iter().map(|entry| unsafe { text(*entry) }).collect()
}

pub(crate) unsafe extern "C" fn hiprtcCreateProgram(
    handle: *mut *mut c_void,
    source: *const c_char,
    _name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: promised by the program.
        let source = unsafe { text(source) };
        // SAFETY: as above.
        let headers = unsafe { texts(headers, count) };
        // SAFETY: as above.
        let names = unsafe { texts(names, count) };
        let (Some(source), Some(headers), Some(names), false) = (source, headers, names, handle.is_null()) else {
            return INVALID_INPUT;
        };
        let headers = names
            .iter()
            .zip(headers)
            .map(|(name, text)| (name.to_string_lossy().into_owned(), text.to_bytes().to_vec()));
        let program = Program {
            source: source.to_bytes().to_vec(),
            headers: headers.collect(),
            ..Program::default()
        };
        let mut programs = PROGRAMS.lock();
        programs.0 += 1;
        let number = programs.0;
        programs.1.insert(number, program);
        // SAFETY: promised by the program; not null.
        unsafe { handle.write(std::ptr::without_provenance_mut(number)) };
        SUCCESS
    })
}

pub(crate) unsafe extern "C" fn hiprtcDestroyProgram(handle: *mut *mut c_void) -> Status {
    guarded(|| {
        // SAFETY: promised by the program: null, or a handle.
        let Some(handle) = (unsafe { handle.as_mut() }) else {
            return INVALID_INPUT;
        };
        let known = PROGRAMS.lock().1.remove(&handle.addr()).is_some();
        *handle = std::ptr::null_mut();
        if known { SUCCESS } else { INVALID_PROGRAM }
    })
}

pub(crate) unsafe extern "C" fn hiprtcAddNameExpression(handle: *mut c_void, expression: *const c_char) -> Status {
    with_program(handle, |program| {
        // SAFETY: promised by the program.
        let Some(expression) = (unsafe { text(expression) }) else {
            return INVALID_INPUT;
        };
        if program.compiled {
            return NO_NAMES_AFTER_COMPILATION;
        }
        if !program.expressions.iter().any(|known| known.as_c_str() == expression) {
            program.expressions.push(expression.to_owned());
        }
        SUCCESS
    })
}

pub(crate) unsafe extern "C" fn hiprtcCompileProgram(
    handle: *mut c_void,
    count: c_int,
    options: *const *const c_char,
) -> Status {
    // The current card, before the table is locked: the first call makes the machine.
    let target = catch_unwind(|| {
        let _inside = enter_library()?;
        let process = process::process()?;
        let version = process.settings.machine(process.abi).ok()?.hip_version;
        let current = process.current_card().ok().and_then(|card| usize::try_from(card).ok());
        let card = process.settings.cards.get(current.unwrap_or(0))?;
        Some((card.clone(), version.runtime_version()))
    });
    with_program(handle, |program| {
        // SAFETY: promised by the program.
        let Some(options) = (unsafe { texts(options, count) }) else {
            return INVALID_INPUT;
        };
        let Ok(Some((card, version))) = target else {
            return INTERNAL;
        };
        let options: Vec<_> = options.iter().map(|option| option.to_string_lossy()).collect();
        program.compiled = true;
        (program.code, program.lowered) = (Vec::new(), Vec::new());
        match compiler::compile(program, &Target { card: &card, version }, &options) {
            Ok(compiled) => {
                (program.code, program.log) = (compiled.code, compiled.log);
                match names::lowered(&program.code, program.expressions.len()) {
                    Ok(lowered) => {
                        program.lowered = lowered;
                        SUCCESS
                    }
                    Err(problem) => {
                        program.log.extend(problem.to_string().into_bytes());
                        NAME_NOT_VALID
                    }
                }
            }
            Err(error) => {
                program.log = error.to_string().into_bytes();
                COMPILATION
            }
        }
    })
}

/// # Safety
/// `out` is null or valid for writing.
unsafe fn write<T>(out: *mut T, value: T) -> Status {
    if out.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: promised by the caller; not null.
    unsafe { out.write(value) };
    SUCCESS
}

/// # Safety
/// `out` is null or has room for `bytes`.
unsafe fn copy(out: *mut c_char, bytes: &[u8]) -> Status {
    if out.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: promised by the caller; not null, and memory of the program, not of this table.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    SUCCESS
}

pub(crate) unsafe extern "C" fn hiprtcGetCodeSize(handle: *mut c_void, size: *mut usize) -> Status {
    with_program(handle, |program| match program.code.len() {
        0 => INVALID_PROGRAM,
        // SAFETY: promised by the program.
        length => unsafe { write(size, length) },
    })
}

pub(crate) unsafe extern "C" fn hiprtcGetCode(handle: *mut c_void, code: *mut c_char) -> Status {
    with_program(handle, |program| match &program.code[..] {
        [] => INVALID_PROGRAM,
        // SAFETY: promised by the program: it has room for what `hiprtcGetCodeSize` says.
        bytes => unsafe { copy(code, bytes) },
    })
}

pub(crate) unsafe extern "C" fn hiprtcGetProgramLogSize(handle: *mut c_void, size: *mut usize) -> Status {
    // SAFETY: promised by the program.
    with_program(handle, |program| unsafe { write(size, program.log.len() + 1) })
}

pub(crate) unsafe extern "C" fn hiprtcGetProgramLog(handle: *mut c_void, log: *mut c_char) -> Status {
    with_program(handle, |program| {
        let ended: Vec<u8> = program.log.iter().copied().chain([0]).collect();
        // SAFETY: promised by the program: it has room for what `hiprtcGetProgramLogSize` says.
        unsafe { copy(log, &ended) }
    })
}

/// The symbol stays valid until the program is destroyed.
pub(crate) unsafe extern "C" fn hiprtcGetLoweredName(
    handle: *mut c_void,
    expression: *const c_char,
    lowered: *mut *const c_char,
) -> Status {
    with_program(handle, |program| {
        // SAFETY: promised by the program.
        let Some(expression) = (unsafe { text(expression) }) else {
            return INVALID_INPUT;
        };
        if !program.compiled {
            return NO_LOWERED_NAMES_BEFORE_COMPILATION;
        }
        let mut pairs = program.expressions.iter().zip(&program.lowered);
        match pairs.find(|(known, _)| known.as_c_str() == expression) {
            // SAFETY: promised by the program.
            Some((_, symbol)) => unsafe { write(lowered, symbol.as_ptr()) },
            None => NAME_NOT_VALID,
        }
    })
}

/// 9.0 whatever the version of HIP.
pub(crate) unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> Status {
    if major.is_null() || minor.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: promised by the program; not null.
    unsafe { major.write(9) };
    // SAFETY: as above.
    unsafe { minor.write(0) };
    SUCCESS
}

pub(crate) unsafe extern "C" fn hiprtcGetErrorString(status: Status) -> *const c_char {
    match status {
        SUCCESS => c"HIPRTC_SUCCESS",
        1 => c"HIPRTC_ERROR_OUT_OF_MEMORY",
        2 => c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
        INVALID_INPUT => c"HIPRTC_ERROR_INVALID_INPUT",
        INVALID_PROGRAM => c"HIPRTC_ERROR_INVALID_PROGRAM",
        5 => c"HIPRTC_ERROR_INVALID_OPTION",
        COMPILATION => c"HIPRTC_ERROR_COMPILATION",
        7 => c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        NO_NAMES_AFTER_COMPILATION => c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        NO_LOWERED_NAMES_BEFORE_COMPILATION => c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        NAME_NOT_VALID => c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        INTERNAL => c"HIPRTC_ERROR_INTERNAL_ERROR",
        100 => c"HIPRTC_ERROR_LINKING",
        _ => c"HIPRTC_ERROR_UNKNOWN",
    }
    .as_ptr()
}

#[cfg(test)]
mod tests;
