//! The same kernels at `-O0`, compiled when the test runs: variables in private memory, calls of small functions, flat addresses.

use crate::source::{Source, sources};
use crate::{assert_nothing, in_parallel, is_gfx1100_only, judge, plan_of};
use clap::Parser;
use rocmforge_sanitize::{Cli, Exit, main, run_seed};
use rocmforge_test_support::device_clang;
use std::path::Path;
use std::process::Command;

const COMPILER: &str = "clang++-19";
const SEEDS: std::ops::Range<u64> = 0..3;

fn compile(source: &Source, arch: &str, folder: &Path) -> Vec<u8> {
    let path = format!("crates/rocmforge-sanitize/tests/kernels/{}.hip", source.name);
    compile_file(source, Path::new(&path), arch, "-O0", folder)
}

fn compile_file(source: &Source, path: &Path, arch: &str, level: &str, folder: &Path) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let object = folder.join(format!("{}-{arch}.co", source.name.replace('/', "-")));
    let mut command = device_clang(COMPILER, arch);
    command
        .args(["-std=c++20", level, "-mcode-object-version=5", "-gline-tables-only"])
        .args(["-Ikernels/include", "-Icrates/rocmforge-sanitize/tests/kernels"])
        .arg(path)
        .arg("-o")
        .arg(&object)
        .current_dir(root);
    let output = command.output().expect("the compiler is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    std::fs::read(object).expect("the compiler has written it")
}

#[test]
fn faults_are_found_in_code_that_is_not_optimised_and_twins_give_no_report() {
    if Command::new(COMPILER).arg("--version").output().is_err() {
        rocmforge_testkit::skip!("{COMPILER} is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let all = sources();
    let jobs: Vec<(&Source, &str)> = all
        .iter()
        .flat_map(|source| ["gfx1100", "gfx1201"].map(|arch| (source, arch)))
        .filter(|(source, arch)| *arch == "gfx1100" || !is_gfx1100_only(source))
        .filter(|(source, _)| !OTHERWISE.iter().any(|(name, _)| *name == source.name))
        .collect();
    let wrong = in_parallel(&jobs, |(source, arch)| {
        wrong_in(source, arch, &compile(source, arch, folder.path()))
    });
    assert_nothing(&wrong, "kernels at -O0 are not reported as they should");
}

/// What is not reported of the faulty kernel, or reported of its twin.
fn wrong_in(source: &Source, arch: &str, object: &[u8]) -> Vec<String> {
    let mut wrong = Vec::new();
    for seed in SEEDS {
        let run = |launch_file: &str| {
            run_seed(&plan_of(object, &source.name, launch_file), seed)
                .unwrap_or_else(|error| panic!("{}: {error}", source.name))
        };
        let at = format!("{} {arch} seed {seed}", source.name);
        let faulty = judge(source, &run(&source.faulty));
        wrong.extend(faulty.into_iter().map(|problem| format!("{at}: {problem}")));
        let correct = run(&source.correct).reports;
        wrong.extend(correct.into_iter().map(|report| format!("{at}, corrected: {report}")));
        if !wrong.is_empty() {
            break;
        }
    }
    wrong
}

/// A compare-and-swap in a function of its own, which another one calls. The faulty kernel's first guess comes from another address than the one it swaps.
const SWAP_IN_FUNCTION: &str = r#"
//# [buffers]
//# sums = "u32[2] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 64
//# args = ["sums"]
#include "faulty.h"

static __attribute__((device, noinline)) u32 swap(u32 *p, u32 expected, u32 value) {
    __hip_atomic_compare_exchange_strong(p, &expected, value, RELAXED, RELAXED, DEVICE);
    return expected;
}

// Passes everything on.
static __attribute__((device, noinline)) u32 try_swap(u32 *p, u32 expected, u32 value) {
    u32 old = swap(p, expected, value);
    return old;
}

KERNEL faulty(u32 *sums) {
    u32 old = sums[1], expected; // FAULT: GlobalRace
    do {
        expected = old;
        old = try_swap(&sums[0], expected, expected + 1);
    } while (old != expected);
    atomic_add(&sums[1], 1u, RELAXED, DEVICE); // FAULT: GlobalRace
}

KERNEL correct(u32 *sums) {
    u32 old = sums[0], expected;
    do {
        expected = old;
        old = try_swap(&sums[0], expected, expected + 1);
    } while (old != expected);
    atomic_add(&sums[1], 1u, RELAXED, DEVICE);
}
"#;

#[test]
fn a_guess_for_a_compare_and_swap_in_a_called_function_is_no_race() {
    at_each_level("swap_in_function", SWAP_IN_FUNCTION);
}

/// `atomicAdd` of `float` and `double` as HIP's header has it, a function of its own: the compiler makes a load and a loop around a compare-and-swap
/// of it. The faulty kernel has a load of its own beside it.
const ADDITION_IN_FUNCTION: &str = r#"
//# [buffers]
//# sum = "f32[1] zeros"
//# wide = "f64[1] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 64
//# args = ["sum", "wide", "f32[128]"]
#include "faulty.h"

static __attribute__((device, noinline)) float atomicAdd(float *address, float val) {
    return __hip_atomic_fetch_add(address, val, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); // FAULT: GlobalRace
}

static __attribute__((device, noinline)) double atomicAdd(double *address, double val) {
    return __hip_atomic_fetch_add(address, val, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

static __attribute__((device, noinline)) float atomicMax(float *address, float val) {
    u32 *bits = (u32 *)address;
    u32 old = __hip_atomic_load(bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    while (__builtin_bit_cast(float, old) < val) {
        u32 expected = old;
        __hip_atomic_compare_exchange_strong(bits, &expected, __builtin_bit_cast(u32, val), __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             __HIP_MEMORY_SCOPE_AGENT);
        if (expected == old) break;
        old = expected;
    }
    return __builtin_bit_cast(float, old);
}

RF_DEVICE float sums_of(float *sum, double *wide) {
    SHARED float part;
    SHARED double wide_part;
    u32 i = rf_thread();
    if (i == 0) {
        part = 0.0f;
        wide_part = 0.0;
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    float old = atomicAdd(&part, 1.0f) + (float)atomicAdd(&wide_part, 1.0);
    old += atomicAdd(sum, 2.0f) + (float)atomicAdd(wide, 2.0);
    return old + atomicMax(sum, old);
}

KERNEL faulty(float *sum, double *wide, float *y) {
    u32 i = rf_thread();
    y[i] = *sum; // FAULT: GlobalRace
    atomicAdd(sum, 1.0f);
}

KERNEL correct(float *sum, double *wide, float *y) {
    y[__builtin_amdgcn_workgroup_id_x() * 64 + rf_thread()] = sums_of(sum, wide);
}
"#;

#[test]
fn the_first_load_of_an_addition_of_floats_is_no_race() {
    at_each_level("addition_in_function", ADDITION_IN_FUNCTION);
}

/// Pointers to one of two tables, chosen by lane: by a branch, by a selection and in a loop. The faulty kernel's index fits the longer table only.
const CHOSEN_TABLES: &str = r#"
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32] iota", "f32[32]"]
#include "faulty.h"

static __attribute__((constant)) const float levels[8] = {-1.0f, -0.7f, -0.4f, -0.1f, 0.1f, 0.4f, 0.7f, 1.0f};
static __attribute__((constant)) const float scales[32] = {0.5f, 0.25f, 1.5f, 2.0f};

// Code may go from one variable of such a section to the next.
__attribute__((device, section("in_a_row"))) float first[2] = {0.5f, 1.0f};
__attribute__((device, section("in_a_row"))) float second[2] = {1.5f, 2.0f};
extern "C" __attribute__((device, visibility("hidden"))) float __start_in_a_row[], __stop_in_a_row[];

static __attribute__((device, noinline)) float entry(const float *table, u32 code) { return table[code]; }

// The compiler may make a table of it.
RF_DEVICE const float *place_of(u32 code) {
    switch (code & 7) {
    case 0: return levels;
    case 1: return scales;
    case 2: return first;
    case 3: return second;
    case 4: return levels + 4;
    case 5: return scales + 8;
    default: return scales + 16;
    }
}

RF_DEVICE float sum_of(const u32 *codes, u32 code) {
    const float *table = code & 1 ? levels : scales;
    float sum = *place_of(code) + *place_of(codes[0]) + table[code & 7] + entry(levels, code & 7) + entry(scales, code);
    const float *place;
    if (code & 2) {
        place = &levels[code & 7];
    } else {
        place = (const float *)&codes[code];
        sum *= 2.0f;
    }
    sum += *place;
    for (const float *at = code & 4 ? scales : levels, *end = at + 8; at != end; at++) sum += *at;
    for (const float *at = __start_in_a_row; at != __stop_in_a_row; at++) sum += *at;
    for (u32 n = 0; n < 2; n++) {
        const float *of = n ? scales : levels;
        sum += of[codes[n]];
    }
    return sum;
}

KERNEL faulty(const u32 *codes, float *y) {
    u32 i = rf_thread(), code = codes[i];
    y[i] = levels[code]; // FAULT: OutOfBounds
}

KERNEL correct(const u32 *codes, float *y) {
    u32 i = rf_thread(), code = codes[i];
    float sum = sum_of(codes, code);
    y[i] = sum + levels[code & 7];
}
"#;

#[test]
fn a_pointer_that_is_to_one_of_two_tables_leads_beyond_none() {
    at_each_level("chosen_tables", CHOSEN_TABLES);
}

/// Threads pass barriers by and store later, which may be right. The barrier is a function of HIP's header.
const PASSED_BY: &str = r#"
#include "include/hip/amd_detail/barrier.h"

extern "C" __attribute__((global)) void passed_by(int *x) {
    int t = __builtin_amdgcn_workitem_id_x();
    if (t < 40) {
        __syncthreads();
        x[t] = t;
        __syncthreads();
    }
    x[64 + t] = 1;
}
"#;
const BARRIER: &str = r#"
static __attribute__((device)) inline void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
"#;

#[test]
fn barriers_passed_by_are_warnings_at_the_line_of_the_kernel() {
    if Command::new(COMPILER).arg("--version").output().is_err() {
        rocmforge_testkit::skip!("{COMPILER} is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("include/hip/amd_detail");
    std::fs::create_dir_all(&header).expect("a writable folder");
    std::fs::write(header.join("barrier.h"), BARRIER).expect("a writable folder");
    let path = folder.path().join("passed_by.hip");
    std::fs::write(&path, PASSED_BY).expect("a writable folder");
    let launch =
        "object = \"passed_by.co\"\nseeds = 2\n[[launch]]\nkernel = \"passed_by\"\nblock = 64\nargs = [\"i32[128]\"]\n";
    let launch_file = folder.path().join("launch.toml");
    std::fs::write(&launch_file, launch).expect("a writable folder");
    let lines = (1..)
        .zip(PASSED_BY.lines())
        .filter(|(_, line)| line.contains("__syncthreads();"));
    let lines: Vec<String> = lines.map(|(line, _)| format!("passed_by.hip:{line}:")).collect();
    for arch in ["gfx1100", "gfx1201"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let mut command = device_clang(COMPILER, arch);
            command
                .args([level, "-gline-tables-only", "-o"])
                .arg(folder.path().join("passed_by.co"));
            assert!(command.arg(&path).status().expect("a compiler").success());
            let cli =
                Cli::try_parse_from(["rocmforge-sanitize".as_ref(), launch_file.as_os_str()]).expect("one argument");
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let exit = main(&cli, &mut out, &mut err);
            let said = String::from_utf8(out).expect("text");
            assert_eq!(
                exit,
                Exit::Clean,
                "{arch} {level}: {said}{}",
                String::from_utf8_lossy(&err)
            );
            let warnings: Vec<&str> = said.lines().filter(|line| line.starts_with("warning: ")).collect();
            // Without optimisation both are one instruction, of a function that is called.
            let barriers = if level == "-O0" { &lines[..1] } else { &lines[..] };
            assert_eq!(warnings.len(), barriers.len(), "{arch} {level}: {said}");
            for line in barriers {
                let named =
                    |warning: &&str| warning.contains(line) && warning.contains("barrier that not every wave reaches");
                assert!(warnings.iter().any(named), "{arch} {level}: {line} {said}");
            }
        }
    }
}

/// Compiles a source for both cards at three levels, and judges what is reported.
fn at_each_level(name: &str, text: &str) {
    if Command::new(COMPILER).arg("--version").output().is_err() {
        rocmforge_testkit::skip!("{COMPILER} is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("{name}.hip"));
    std::fs::write(&path, text).expect("a writable folder");
    let source = Source::read(name.to_owned(), text);
    let cases = ["gfx1100", "gfx1201"]
        .into_iter()
        .flat_map(|arch| ["-O0", "-O1", "-O3"].map(|level| (arch, level)));
    let wrong: Vec<String> = cases
        .flat_map(|(arch, level)| {
            let object = compile_file(&source, &path, arch, level, folder.path());
            let wrong = wrong_in(&source, arch, &object);
            wrong.into_iter().map(move |what| format!("{level} {what}"))
        })
        .collect();
    assert_nothing(&wrong, name);
}

/// A byte is added to another with what lies beside them in their records, which nobody has written: the byte of the sum is written, the one above is not.
const SUM_OF_BYTES: &str = r#"
//# [buffers]
//# records = "u32[128]"
//#
//# [[launch]]
//# kernel = "fill"
//# block = 64
//# args = ["records"]
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["records", "u32[64]"]
#include "faulty.h"

struct Record {
    u32 value;
    u8 tag;
};

KERNEL fill(Record *records) {
    u32 t = rf_thread();
    records[t].value = t;
    records[t].tag = t;
}

KERNEL faulty(const unsigned long *records, u32 *y) {
    u32 t = rf_thread();
    u16 mine = records[t] >> 32, other = records[t ^ 1] >> 32; // FAULT: Uninitialised
    y[t] = (u16)(mine + other);
}

KERNEL correct(const unsigned long *records, u32 *y) {
    u32 t = rf_thread();
    u16 mine = records[t] >> 32, other = records[t ^ 1] >> 32;
    y[t] = (u8)(mine + other);
}
"#;

#[test]
fn the_low_byte_of_a_sum_depends_on_low_bytes() {
    at_each_level("sum_of_bytes", SUM_OF_BYTES);
}

/// Kernels that are not the same thing at `-O0`, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("initcheck/halves_in_turn", "the load has a line of its own"),
    (
        "memcheck/register_array",
        "the array is in private memory, where its end is another kind of fault",
    ),
    (
        "racecheck/volatile_flag_in_lds",
        "the wave waits for LDS before the flag, to load a variable",
    ),
];
