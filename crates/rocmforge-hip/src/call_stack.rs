//! Call stacks of the host: where in the program the calls were made that reports name.

use cpp_demangle::Symbol;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Calls whose stacks are kept: the later half goes on overwriting the earlier one.
const KEPT_CALLS: usize = 1 << 20;
/// Frames of this library between the program and where its stack is taken, at most.
const OWN_FRAMES: usize = 12;

/// Whether reports name calls of this function: what allocates, frees, copies, fills and launches.
pub(crate) const fn keeps(name: &str) -> bool {
    const PREFIXES: [&str; 9] = [
        "hipMalloc",
        "hipFree",
        "hipHost",
        "hipMem",
        "hipLaunch",
        "hipModuleL",
        "hipExt",
        "hipGraphLaunch",
        "hipGraphAdd",
    ];
    let mut index = 0;
    while index < PREFIXES.len() {
        if starts_with(name, PREFIXES[index]) {
            return true;
        }
        index += 1;
    }
    false
}

const fn starts_with(text: &str, start: &str) -> bool {
    let (text, start) = (text.as_bytes(), start.as_bytes());
    let mut at = 0;
    while at < start.len() {
        if at == text.len() || text[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The stacks of the latest calls.
pub(crate) struct CallStacks {
    frames: usize,
    stacks: Mutex<Stacks>,
}

#[derive(Default)]
struct Stacks {
    /// Each stack once: addresses of its frames, innermost first.
    known: FxHashMap<Box<[usize]>, u32>,
    all: Vec<Box<[usize]>>,
    /// Number of a call and its stack, at the call's number modulo [`KEPT_CALLS`].
    calls: Vec<(u64, u32)>,
}

/// The frames of a call in progress.
pub(crate) struct Taken(Vec<usize>);

impl CallStacks {
    /// Keeps `frames` frames of each call; 0: nothing.
    pub(crate) fn new(frames: usize) -> Self {
        Self {
            frames,
            stacks: Mutex::default(),
        }
    }

    /// The stack of the calling thread.
    pub(crate) fn take(&self) -> Option<Taken> {
        if self.frames == 0 {
            return None;
        }
        let wanted = self.frames + OWN_FRAMES;
        let mut found = Vec::with_capacity(wanted);
        backtrace::trace(|frame| {
            found.push(frame.ip() as usize);
            found.len() < wanted
        });
        Some(Taken(found))
    }

    /// Keeps it for a call.
    pub(crate) fn keep(&self, call: u64, Taken(frames): Taken) {
        let stacks = &mut *self.stacks.lock();
        let stack = match stacks.known.get(&frames[..]) {
            Some(stack) => *stack,
            None => {
                let frames = frames.into_boxed_slice();
                let stack = stacks.all.len() as u32;
                stacks.all.push(frames.clone());
                stacks.known.insert(frames, stack);
                stack
            }
        };
        let slot = call as usize % KEPT_CALLS;
        if stacks.calls.len() <= slot {
            stacks.calls.resize(slot + 1, (0, 0));
        }
        stacks.calls[slot] = (call, stack);
    }

    /// The frames of the program in a call's stack, innermost first, each as text.
    pub(crate) fn of(&self, call: u64) -> Vec<String> {
        let frames = {
            let stacks = self.stacks.lock();
            let kept = stacks
                .calls
                .get(call as usize % KEPT_CALLS)
                .filter(|(number, _)| *number == call && call > 0);
            let Some((_, stack)) = kept else { return Vec::new() };
            stacks.all[*stack as usize].clone()
        };
        let own = base_of(base_of as *const () as usize);
        let outside = frames.iter().skip_while(|frame| base_of(**frame) == own);
        let mut texts = Vec::new();
        for frame in outside.take(self.frames).filter(|frame| **frame != 0) {
            texts.extend(describe(*frame));
            // What has called `main` is the same in every program.
            if texts.last().is_some_and(|text| text.starts_with("main ")) {
                break;
            }
        }
        texts
    }
}

/// Where the file that an address lies in was loaded.
fn base_of(address: usize) -> usize {
    look_up(address).map_or(0, |info| info.dli_fbase as usize)
}

fn look_up(address: usize) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `info` is a live out-pointer; any address may be asked for.
    let found = unsafe { libc::dladdr(address as *const libc::c_void, info.as_mut_ptr()) };
    // SAFETY: `dladdr` has filled it if it says so.
    (found != 0).then(|| unsafe { info.assume_init() })
}

/// `function (file:line)` of a frame and of what is inlined there; without debug information the file and the offset in it.
fn describe(frame: usize) -> Vec<String> {
    let mut texts = Vec::new();
    // A return address lies behind its call.
    backtrace::resolve((frame - 1) as *mut std::ffi::c_void, |symbol| {
        let name = symbol
            .name()
            .map_or_else(|| "?".to_owned(), |name| demangled(&name.to_string()));
        texts.push(match (symbol.filename(), symbol.lineno()) {
            (Some(file), Some(line)) => format!("{name} ({}:{line})", file.display()),
            _ => format!("{name} ({})", place(frame)),
        });
    });
    if texts.is_empty() {
        texts.push(place(frame));
    }
    texts
}

fn demangled(name: &str) -> String {
    Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle().ok())
        .unwrap_or_else(|| name.to_owned())
}

/// `file+offset` of an address.
fn place(frame: usize) -> String {
    match look_up(frame) {
        Some(info) if !info.dli_fname.is_null() => {
            // SAFETY: the dynamic linker's name of a loaded file is a text that lives as long as the file is loaded.
            let name = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_string_lossy();
            format!("{name}+{:#x}", frame - info.dli_fbase as usize)
        }
        _ => format!("{frame:#x}"),
    }
}
