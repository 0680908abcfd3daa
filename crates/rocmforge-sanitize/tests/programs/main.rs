//! C++ programs, one for each subject of HIP's interface: compiled by clang against the distribution's headers, linked to AMD's
//! `libamdhip64`, and run by `rocmforge-sanitize run`. Each checks its own values and ends with status 0 if all are right.
//!
//! A program without a fault must have no finding. A faulty one must have the finding that its row below names, at the lines that
//! its source marks with comments.

mod device_library;
mod library_names;
mod options;

use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const COMPILER: &str = "clang++-19";
/// What the distribution's package of AMD's library is known by.
const HEADER: &str = "/usr/include/hip/hip_runtime_api.h";
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so";

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hip");
    folder.join(format!("{name}.hip"))
}

/// One program: how it is compiled, and how it is run.
struct Program {
    name: &'static str,
    /// Other translation units.
    units: &'static [&'static str],
    cards: &'static [&'static str],
    processors: &'static [&'static str],
    flags: &'static [&'static str],
    /// Options of `rocmforge-sanitize run`.
    options: &'static [&'static str],
    /// A file that is made beside it and given to it.
    companion: Option<Companion>,
    /// Whether it is linked to the library, or loads it itself.
    linked: bool,
    /// Whether it is compiled with AMD's device library.
    device_library: bool,
    /// Environments that it is run in, one after the other: variables and values.
    environments: &'static [&'static [(&'static str, &'static str)]],
    /// The exit status of `rocmforge-sanitize`.
    status: i32,
    /// Texts that it prints.
    prints: &'static [&'static str],
    /// Texts that `rocmforge-sanitize` prints.
    says: &'static [&'static str],
    /// A text that `rocmforge-sanitize` prints one time, in however many launches.
    once: &'static str,
    /// Texts that its findings have, `{MARK line}` standing for the line of the source with that comment.
    findings: &'static [&'static str],
}

/// What a program loads at run time.
#[derive(Clone, Copy)]
enum Companion {
    /// `module_kernels.co`.
    Module,
    /// `plugin_library.so`.
    Library,
}

impl Program {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            units: &[],
            cards: &["gfx1100"],
            processors: &["gfx1100"],
            flags: &[],
            options: &[],
            companion: None,
            linked: true,
            device_library: false,
            environments: &[&[]],
            status: 0,
            prints: &[],
            says: &[],
            once: "",
            findings: &[],
        }
    }

    /// Compiles it into `folder`.
    fn compile(&self, folder: &Path) {
        match self.companion {
            Some(Companion::Module) => {
                let mut command = self.compiler(folder);
                command.args([
                    "--offload-device-only",
                    "--no-gpu-bundle-output",
                    "-o",
                    "module_kernels.co",
                ]);
                succeeds(command.arg(source("module_kernels")));
            }
            Some(Companion::Library) => {
                let mut command = self.compiler(folder);
                command.args(["-shared", "-Wl,-z,defs", "-o", "plugin_library.so"]);
                succeeds(command.arg(source("plugin_library")).arg("-lamdhip64"));
            }
            None => {}
        }
        let mut command = self.compiler(folder);
        command.args(self.flags).args(["-o", "program"]).arg(source(self.name));
        command.args(self.units.iter().map(|unit| source(unit)));
        if self.linked {
            // Names that AMD's library does not have fail here.
            command.arg("-lamdhip64");
        } else {
            // The compiler would add the library by itself.
            command.arg("-no-hip-rt");
        }
        succeeds(&mut command);
    }

    fn compiler(&self, folder: &Path) -> Command {
        let mut command = Command::new(COMPILER);
        command.current_dir(folder).args(["-x", "hip", "-g", "-O1", "-fPIC"]);
        if self.device_library {
            let library = device_library::folder().display();
            command
                .arg(format!("--rocm-device-lib-path={library}"))
                .arg("-DDEVICE_LIBRARY");
        } else {
            command.arg("-nogpulib");
        }
        command.args(["-Werror", "-Wno-deprecated-declarations"]);
        // The distribution's header asks for it, and clang has one of its own.
        command.args(["-D__AMDGCN_WAVEFRONT_SIZE=32", "-Wno-macro-redefined"]);
        command.args(self.processors.iter().map(|name| format!("--offload-arch={name}")));
        command
    }

    /// Runs it on a card, or on several whose names are separated by commas, and checks status and findings.
    fn check(&self, folder: &Path, card: &str, environment: &[(&str, &str)]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge-sanitize"));
        command.current_dir(folder).arg("run").envs(environment.iter().copied());
        command.args(card.split(',').flat_map(|card| ["--card", card]));
        command.args(self.options).args(["--", "./program"]);
        match self.companion {
            Some(Companion::Module) => drop(command.arg("module_kernels.co")),
            Some(Companion::Library) => drop(command.arg("./plugin_library.so")),
            None => {}
        }
        let ran = command.output().expect("the program under test is built");
        let (out, found) = texts(&ran);
        let said = format!(
            "{} on {card} with {environment:?}: {}\n{out}\n{found}",
            self.name, ran.status
        );
        assert_eq!(ran.status.code(), Some(self.status), "{said}");
        if self.findings.is_empty() {
            // A heading of a finding names its kind in the first column; summaries of each process count them.
            let summaries: Vec<_> = found.lines().filter(|line| line.contains(" findings (")).collect();
            let none = summaries.iter().all(|line| line.starts_with("========= 0 findings"));
            assert!(none, "{said}");
        }
        for text in self.prints {
            assert!(out.contains(text), "{text:?} is not printed\n{said}");
        }
        for text in self.says {
            assert!(found.contains(text), "{text:?} is not said\n{said}");
        }
        if !self.once.is_empty() {
            assert_eq!(
                found.matches(self.once).count(),
                1,
                "{:?} is not said once\n{said}",
                self.once
            );
        }
        for text in self.findings {
            let text = self.lines(text);
            assert!(found.contains(&text), "{text:?} is not said\n{said}");
        }
    }

    /// `{kernel line}` becomes the number of the line that ends in `// kernel line`.
    fn lines(&self, text: &str) -> String {
        let own = std::fs::read_to_string(source(self.name)).expect("the source is in the repository");
        let mut text = text.to_owned();
        for mark in ["kernel line", "host line", "allocation line"] {
            let place = own.lines().position(|line| line.ends_with(&format!("// {mark}")));
            if let Some(place) = place {
                text = text.replace(&format!("{{{mark}}}"), &format!("{}.hip:{}", self.name, place + 1));
            }
        }
        assert!(!text.contains('{'), "{text}: there is no such mark in {}", self.name);
        text
    }

    fn run(&self) {
        let folder = tempfile::tempdir().expect("a folder");
        self.compile(folder.path());
        let needed = needed(&folder.path().join("program"));
        assert_eq!(
            needed.iter().any(|name| name == "libamdhip64.so.5"),
            self.linked,
            "{needed:?}"
        );
        for card in self.cards {
            for environment in self.environments {
                self.check(folder.path(), card, environment);
            }
        }
    }
}

fn texts(ran: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&ran.stdout), text(&ran.stderr))
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let ran = command.output().expect("the compiler is installed");
    let (out, err) = texts(&ran);
    assert!(ran.status.success(), "{command:?}\n{out}{err}");
}

/// The libraries that a file asks for.
fn needed(path: &Path) -> Vec<String> {
    let data = std::fs::read(path).expect("the compiler has written it");
    let data = data.as_slice();
    let header = FileHeader64::<object::Endianness>::parse(data).expect("an ELF file");
    let endian = header.endian().expect("an ELF file");
    let sections = header.sections(endian, data).expect("sections");
    let (entries, strings) = sections
        .dynamic(endian, data)
        .expect("a dynamic section")
        .expect("a dynamic section");
    let strings = sections
        .strings(endian, data, strings)
        .expect("names of the dynamic section");
    let entries = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    entries
        .map(|entry| String::from_utf8_lossy(entry.string(endian, strings).expect("a name")).into_owned())
        .collect()
}

/// What is missing to compile the programs.
fn missing() -> Option<String> {
    if Command::new(COMPILER).arg("--version").output().is_err() {
        return Some(format!("{COMPILER} is not installed"));
    }
    if Command::new("clang-offload-bundler-19")
        .arg("--version")
        .output()
        .is_err()
    {
        return Some("clang-offload-bundler-19 (clang-tools-19) is not installed".to_owned());
    }
    let absent = [HEADER, LIBRARY].into_iter().find(|path| !Path::new(path).exists())?;
    Some(format!("{absent} (libamdhip64-dev) is not installed"))
}

macro_rules! programs {
    ($($name:ident { $($field:ident: $value:expr),* $(,)? })*) => {$(
        #[test]
        fn $name() {
            if let Some(missing) = missing() {
                rocmforge_testkit::skip!("{missing}");
            }
            let program = Program { $($field: $value,)* ..Program::new(stringify!($name)) };
            if program.device_library && let Some(missing) = device_library::missing() {
                rocmforge_testkit::skip!("{missing}");
            }
            program.run();
        }
    )*};
}

const BOTH: &[&str] = &["gfx1100", "gfx1201"];

/// ROCm is looked for in no place but one where it is not.
const WITHOUT_ROCM: &[(&str, &str)] = &[("ROCM_PATH", "/nowhere")];

programs! {
    vector_add { cards: BOTH, processors: BOTH }
    properties { cards: BOTH, processors: BOTH }
    attributes {}
    device_choice {}
    contexts {}
    memory_info {}
    malloc_free { options: &["--leak-check", "full"] }
    pointers {}
    copies_1d {}
    copies_2d {}
    copies_3d {}
    memsets {}
    pitched {}
    device_arrays {}
    textures_linear { cards: BOTH, processors: BOTH, device_library: true, flags: &["-O3"], options: &["--leak-check", "full"] }
    textures_arrays { cards: BOTH, processors: BOTH, device_library: true, flags: &["-O3"], options: &["--leak-check", "full"] }
    textures_arrays_not_optimised {
        name: "textures_arrays", cards: BOTH, processors: BOTH, device_library: true, flags: &["-O0"],
    }
    surfaces { cards: BOTH, processors: BOTH, device_library: true, flags: &["-O3"], options: &["--leak-check", "full"] }
    surfaces_not_optimised { name: "surfaces", cards: BOTH, processors: BOTH, device_library: true, flags: &["-O0"] }
    textures_linear_not_optimised {
        name: "textures_linear", cards: BOTH, processors: BOTH, device_library: true, flags: &["-O0"],
    }
    pinned {}
    registered {}
    managed {}
    symbols {}
    streams { options: &["--leak-check", "full"] }
    events { options: &["--leak-check", "full"] }
    wait_event {}
    callbacks {}
    unattended {
        options: &["--seed", "3"],
        says: &["--seed 3 may give another run next time: ", " operations ran while the program made no call"],
    }
    legacy_stream {}
    per_thread_stream { flags: &["-fgpu-default-stream=per-thread", "-pthread"] }
    capture {}
    pools {}
    modules { companion: Some(Companion::Module) }
    libraries { companion: Some(Companion::Module) }
    by_name { companion: Some(Companion::Module), linked: false }
    occupancy {}
    function_attributes {}
    launches_3d {}
    dynamic_lds { cards: BOTH, processors: BOTH }
    templates {}
    two_units { units: &["two_units_other"] }
    static_life { units: &["static_life_late"] }
    host_threads {
        flags: &["-pthread"],
        options: &["--seed", "3"],
        says: &["--seed 3 may give another run next time: 9 threads called HIP"],
    }
    fork_before {}
    fork_after {}
    plugin { companion: Some(Companion::Library) }
    exec {}
    last_error {}
    error_names {}
    peers {}
    reset {}
    atomics { cards: BOTH, processors: BOTH }
    waves { cards: BOTH, processors: BOTH }
    early_return { cards: BOTH, processors: BOTH }
    early_return_not_optimised { name: "early_return", cards: BOTH, processors: BOTH, device_library: true, flags: &["-O0"] }
    early_return_optimised { name: "early_return", cards: BOTH, processors: BOTH, flags: &["-O3"] }
    early_return_of_waves_of_64 {
        name: "early_return",
        cards: BOTH,
        processors: BOTH,
        flags: &["-mwavefrontsize64", "-D__AMDGCN_WAVEFRONT_SIZE=64"],
        says: &["warning: kernel _Z7reversePii was compiled for waves of 64 lanes (-mwavefrontsize64), but warpSize of this card is 32"],
        once: "waves of 64 lanes",
    }
    matmul { cards: BOTH, processors: BOTH }
    arguments {}
    numbers {}
    half_constants { cards: BOTH, processors: BOTH, flags: &["-O3", "-ffp-contract=off"] }
    calls {}
    unused_lds { says: &["========= warning: read of LDS that no wave has written", "unused_lds.hip:6:", "nothing has used the value"] }
    unused_race { cards: BOTH, processors: BOTH, says: &["========= warning: race in LDS", "nothing has used the value"] }
    unused_race_written_first {
        name: "unused_race",
        options: &["--seed", "1"],
        says: &["========= warning: race in LDS", "read and write by two waves", "nothing has used the value"],
    }
    unused_race_not_optimised { name: "unused_race", device_library: true, cards: BOTH, processors: BOTH, flags: &["-O0"], says: &["========= warning: race in LDS"] }
    struct_padding { says: &[
        "========= warning: read of memory that was never written; 3 B of each 16 B, from byte 13 on, are not written, as the padding of a struct is",
    ] }
    no_device_code {
        processors: &["gfx1030"],
        status: 2,
        says: &[
            "========= no code for this card, which is gfx1100; there is code for gfx1030; no simulated card runs it",
            "========= nothing was checked: the program has no code for the card, and has launched no kernel",
        ],
    }
    code_of_another_card {
        processors: &["gfx1201"],
        status: 2,
        says: &[
            "========= no code for this card, which is gfx1100; there is code for gfx1201; --card gfx1201 would run it",
            "========= nothing was checked: the program has no code for the card, and has launched no kernel",
        ],
    }
    hostile {
        flags: &["-pthread", "-Wno-unused-value", "-Wno-unused-result"],
        options: &["--print-limit", "100"],
        status: 2,
        prints: &["done"],
        findings: &["use of a handle that is not alive", "free of memory HIP never allocated"],
    }
    // Several cards.
    two_cards { cards: &["gfx1100,gfx1100", "gfx1201,gfx1201"], processors: BOTH, options: &["--peer-access", "on", "--leak-check", "full"] }
    mixed_cards { cards: &["gfx1201,gfx1100,gfx1201"], processors: BOTH, options: &["--vram", "1GiB"] }
    // Compiled while it runs: with the distribution's headers and device library, and without.
    rtc {
        environments: &[WITHOUT_ROCM, &[]],
        cards: BOTH,
        flags: &["-std=c++17"],
        prints: &["thread 0 of 64: 1.50 a text of more than one packet, so that it is sent in several parts%\n", "thread 1 of 64"],
        findings: &["kernel aborted: kernel", "in kernel stops", "Device-side assertion `in[0] > 2 && \"too small\"' failed"],
    }
    rtc_math { environments: &[WITHOUT_ROCM], flags: &["-std=c++17"], prints: &["tgamma"] }
    rtc_half { environments: &[WITHOUT_ROCM], cards: BOTH, flags: &["-std=c++17"], prints: &["half: ", "bfloat16: "] }
    rtc_include { environments: &[&[], WITHOUT_ROCM], flags: &["-std=c++17"] }
    // With AMD's own code for what kernels ask of the host.
    grid_sync { device_library: true }
    device_printf { cards: BOTH, processors: BOTH, device_library: true, prints: &[
        "block 1, thread 2: 2.50 text -7\n", "no arguments\n", "100% of 0x2a, 13\n",
    ] }
    device_malloc { cards: BOTH, processors: BOTH, flags: &["-O3"], device_library: true }
    // With a fault.
    device_assert { cards: BOTH, processors: BOTH, device_library: true, prints: &["hipErrorLaunchFailure"], findings: &[
        "kernel aborted: kernel", "in kernel _Z5checkPKii", "{kernel line}:", "Device-side assertion `p[threadIdx.x] < limit' failed", "{host line})",
    ] }
    grid_sync_alone { device_library: true, findings: &[
        "in kernel _Z4meetPi", "only a cooperative launch can", "{kernel line}:", "{host line})",
    ] }
    out_of_bounds { findings: &[
        "out of bounds: kernel", "in kernel _Z3addPKfPfi", "write of 4 B", "at _Z3addPKfPfi", "{kernel line}:", "{host line})",
        "{allocation line})",
    ] }
    unattended_fault { findings: &["out of bounds: kernel", "in kernel _Z5writePi", "{kernel line}:", "{host line})"] }
    virtual_memory { findings: &["out of bounds: kernel", "in kernel _Z5countPii", "write of 4 B", "{kernel line}:", "{host line})"] }
    unrolled { cards: BOTH, processors: BOTH, flags: &["-O3"], findings: &[
        "out of bounds: kernel", "{kernel line}:", "4 instructions of this line", "1 findings (256 times)",
    ] }
    forgotten_fields { findings: &["read of memory that was never written: hipMemcpy", "{host line})", "1 findings"] }
    use_after_free { findings: &["use after free: kernel", "in kernel _Z4fillPi", "{kernel line}:", "{host line})"] }
    no_peer_access { cards: &["gfx1100,gfx1100"], prints: &["can access: 0"], findings: &[
        "out of bounds: kernel", "in kernel _Z4copyPKiPi", "read of 4 B", "{kernel line}:", "{host line})",
        "the memory of device 0, which device 1 may not access: this machine has no peer access",
    ] }
    race { findings: &[
        "race in device memory inside one launch: kernel", "in kernel _Z5countPi", "{kernel line}:", "{host line})",
    ] }
    stream_race { findings: &[
        "race: nothing orders two accesses: kernel", "in kernel _Z4readPKiPi", "in kernel _Z5writePi", "{host line})",
    ] }
    uninitialised { findings: &[
        "read of memory that was never written: kernel", "in kernel _Z4copyPKiPi", "32 lanes in all", "{kernel line}:", "{host line})",
    ] }
    texture_of_freed_array { cards: BOTH, processors: BOTH, device_library: true, flags: &["-O3"], findings: &[
        "use after free: kernel", "in kernel _Z4copyP13__hip_texturePf", "read of 4 B", "32 lanes in all", "{kernel line}:",
    ] }
    texture_race { device_library: true, flags: &["-O3"], findings: &[
        "race: nothing orders two accesses: kernel", "in kernel _Z4copyP13__hip_texturePf", "{host line})",
    ] }
    texture_of_nothing {
        cards: BOTH, processors: BOTH, device_library: true, flags: &["-O3"], prints: &["so far so good"], findings: &[
            "read of memory that was never written: kernel", "in kernel _Z4copyP13__hip_texturefPf", "32 lanes in all", "{kernel line}:",
            "1 findings",
        ],
    }
    missing_barrier { findings: &["in kernel _Z7reversePi", "{kernel line}:", "{host line})"] }
    endless { findings: &["kernel that does not end: kernel", "in kernel _Z4waitPi", "{kernel line}:", "{host line})"] }
    double_free { findings: &["double free: hipFree", "{host line})", "2 findings"] }
    signals { findings: &[
        "double free: hipFree", "{host line})", "HIP calls during a HIP call of its own thread, each answered hipErrorNotSupported",
    ] }
    pinned_zeros {}
    copy_too_long { findings: &["out of bounds: hipMemcpy", "write of 257 B", "{host line})", "out of bounds: hipMemset"] }
    bad_arguments { findings: &[
        "use of a handle that is not alive: hipStreamSynchronize", "use of a handle that is not alive: hipEventRecord",
    ] }
    heap_overrun { cards: BOTH, processors: BOTH, device_library: true, findings: &[
        "out of bounds: kernel", "in kernel _Z7overrunPii", "write of 4 B", "0 B past the end of the allocation", "64 lanes in all",
        "{kernel line}:", "{host line})", "allocation: \"block of device malloc\", 64 B", "heap_overrun.hip:5)", "1 findings (64 times)",
    ] }
    heap_use_after_free { cards: BOTH, processors: BOTH, device_library: true, flags: &["-O3"], findings: &[
        "use after free: kernel", "in kernel _Z4latePi", "read of 4 B", "8 lanes in all", "{kernel line}:", "{host line})",
        "\"block of device malloc\", 64 B", "freed by call",
    ] }
    heap_double_free { cards: BOTH, processors: BOTH, device_library: true, flags: &["-O0"], findings: &[
        "double free: kernel", "free of memory HIP never allocated: kernel", "in kernel _Z5twicePi", "8 lanes in all", "{kernel line}:",
        "{host line})", "2 findings (16 times)",
    ] }
    heap_leak { cards: BOTH, processors: BOTH, device_library: true, options: &["--leak-check", "full"], findings: &[
        "leak: malloc", "4 blocks of device malloc, 160 B in all, that no kernel has freed", "in kernel _Z4keepPi", "{kernel line}:",
        "{host line})", "1 findings",
    ] }
    leaks { options: &["--leak-check", "full"], findings: &[
        "leak: hipMalloc", "12345 B", "{host line})", "leak: hipHostMalloc", "leak: hipStreamCreate", "leak: hipEventCreate", "4 findings",
    ] }
}
