//! A kernel is compiled and launched through the table that programs jump through.

use crate::names::find;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

/// A function of the table.
macro_rules! hip {
    ($name:ident($($arg:expr => $ty:ty),*)) => {{
        let function = find(stringify!($name)).unwrap().0;
        // SAFETY: the types are those of HIP's documentation.
        let function: unsafe extern "C" fn($($ty),*) -> c_int = unsafe { std::mem::transmute(function) };
        // SAFETY: what the arguments point to lives during the call, and has the size asked for.
        unsafe { function($($arg),*) }
    }};
}

type Handle = *mut c_void;

/// Whether one of the compilers that hiprtc takes can be started.
fn has_compiler() -> bool {
    let named = std::env::var("ROCMFORGE_CLANG").ok();
    let usual = ["clang++-22", "clang++-19", "clang++"].map(str::to_owned);
    let mut all = named.into_iter().chain(usual);
    all.any(|compiler| std::process::Command::new(compiler).arg("--version").output().is_ok())
}

const SOURCE: &CStr = c"
#include <hip/hip_runtime.h>
#include \"factor.h\"
__device__ int launches;
template <typename T, int N> __global__ void scale(T* x, int count) {
    __shared__ T tile[64];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = at < count ? x[at] : 0;
    __syncthreads();
    if (at < count) x[at] = tile[threadIdx.x] * FACTOR + N;
    if (at == 0) atomicAdd(&launches, 1);
}";

fn create(source: &CStr) -> Handle {
    let (headers, names) = ([c"#define FACTOR (SIGN * 3)".as_ptr()], [c"factor.h".as_ptr()]);
    let mut program = null_mut();
    let status = hip!(hiprtcCreateProgram(
        &raw mut program => *mut Handle, source.as_ptr() => *const c_char, c"scale.cu".as_ptr() => *const c_char,
        1 => c_int, headers.as_ptr() => *const *const c_char, names.as_ptr() => *const *const c_char
    ));
    assert_eq!(status, super::SUCCESS);
    program
}

fn compile(program: Handle) -> c_int {
    let options = [c"-DSIGN=-1".as_ptr(), c"--gpu-architecture=gfx1100".as_ptr()];
    hip!(hiprtcCompileProgram(program => Handle, 2 => c_int, options.as_ptr() => *const *const c_char))
}

fn log(program: Handle) -> String {
    let mut size = 0;
    assert_eq!(
        hip!(hiprtcGetProgramLogSize(program => Handle, &raw mut size => *mut usize)),
        0
    );
    let mut bytes = vec![1_u8; size];
    assert_eq!(
        hip!(hiprtcGetProgramLog(program => Handle, bytes.as_mut_ptr().cast() => *mut c_char)),
        0
    );
    CStr::from_bytes_with_nul(&bytes).unwrap().to_str().unwrap().to_owned()
}

fn lowered(program: Handle, expression: &CStr) -> Result<&CStr, c_int> {
    let mut name = null();
    match hip!(hiprtcGetLoweredName(
        program => Handle, expression.as_ptr() => *const c_char, &raw mut name => *mut *const c_char
    )) {
        // SAFETY: the library's text, which lives as long as the program.
        0 => Ok(unsafe { CStr::from_ptr(name) }),
        status => Err(status),
    }
}

#[test]
fn a_kernel_of_a_template_is_compiled_named_and_launched() {
    if !has_compiler() {
        rocmforge_testkit::skip!("no clang++-22, clang++-19 or clang++ on the path, and none in ROCMFORGE_CLANG");
    }
    const KERNEL: &CStr = c"scale<float, 1>";
    let mut program = create(SOURCE);
    for expression in [KERNEL, c"&launches"] {
        let status = hip!(hiprtcAddNameExpression(program => Handle, expression.as_ptr() => *const c_char));
        assert_eq!(status, super::SUCCESS);
    }
    assert_eq!(
        lowered(program, KERNEL),
        Err(super::NO_LOWERED_NAMES_BEFORE_COMPILATION)
    );
    assert_eq!(compile(program), super::SUCCESS, "{}", log(program));
    let kernel = lowered(program, KERNEL).unwrap();
    assert_eq!(kernel, c"_Z5scaleIfLi1EEvPT_i");
    assert_eq!(lowered(program, c"&launches"), Ok(c"launches"));
    assert_eq!(lowered(program, c"scale<int, 1>"), Err(super::NAME_NOT_VALID));
    let late = hip!(hiprtcAddNameExpression(program => Handle, KERNEL.as_ptr() => *const c_char));
    assert_eq!(late, super::NO_NAMES_AFTER_COMPILATION);

    let mut size = 0;
    assert_eq!(
        hip!(hiprtcGetCodeSize(program => Handle, &raw mut size => *mut usize)),
        0
    );
    let mut code = vec![0_u8; size];
    assert_eq!(
        hip!(hiprtcGetCode(program => Handle, code.as_mut_ptr().cast() => *mut c_char)),
        0
    );
    let (mut module, mut function, mut memory) = (null_mut(), null_mut(), null_mut());
    assert_eq!(
        hip!(hipModuleLoadData(&raw mut module => *mut Handle, code.as_ptr().cast() => *const c_void)),
        0
    );
    assert_eq!(
        hip!(hipModuleGetFunction(&raw mut function => *mut Handle, module => Handle, kernel.as_ptr() => *const c_char)),
        0
    );
    const COUNT: usize = 100;
    let mut values: Vec<f32> = (0..COUNT as u16).map(f32::from).collect();
    let bytes = size_of_val(&values[..]);
    assert_eq!(hip!(hipMalloc(&raw mut memory => *mut Handle, bytes => usize)), 0);
    let copy = |to: Handle, from: *const c_void, kind: c_int| {
        assert_eq!(
            hip!(hipMemcpy(to => Handle, from => *const c_void, bytes => usize, kind => c_int)),
            0
        );
    };
    copy(memory, values.as_ptr().cast(), 1);
    let mut count = COUNT as c_int;
    let mut params: [Handle; 2] = [(&raw mut memory).cast(), (&raw mut count).cast()];
    let status = hip!(hipModuleLaunchKernel(
        function => Handle, 2 => c_uint, 1 => c_uint, 1 => c_uint, 64 => c_uint, 1 => c_uint, 1 => c_uint,
        0 => c_uint, null_mut() => Handle, params.as_mut_ptr() => *mut Handle, null_mut() => *mut Handle
    ));
    assert_eq!(status, 0);
    copy(values.as_mut_ptr().cast(), memory, 2);
    for (index, value) in values.iter().enumerate() {
        assert_eq!(*value, 1.0 - 3.0 * index as f32, "element {index}");
    }
    assert_eq!(hip!(hipFree(memory => Handle)), 0);
    assert_eq!(hip!(hipModuleUnload(module => Handle)), 0);
    let old = program;
    assert_eq!(hip!(hiprtcDestroyProgram(&raw mut program => *mut Handle)), 0);
    assert!(program.is_null());
    assert_eq!(compile(old), super::INVALID_PROGRAM);
}

#[test]
fn what_the_compiler_says_is_the_log() {
    if !has_compiler() {
        rocmforge_testkit::skip!("no clang++-22, clang++-19 or clang++ on the path, and none in ROCMFORGE_CLANG");
    }
    let mut program = create(c"__global__ void wrong() { missing(); }");
    assert_eq!(compile(program), super::COMPILATION);
    assert!(log(program).contains("missing"), "{}", log(program));
    let mut size = 0;
    let status = hip!(hiprtcGetCodeSize(program => Handle, &raw mut size => *mut usize));
    assert_eq!(status, super::INVALID_PROGRAM);
    assert_eq!(hip!(hiprtcDestroyProgram(&raw mut program => *mut Handle)), 0);
}

/// Headers as ROCm 6 has them: under hiprtc each leaves out what AMD's hiprtc brings, and needs what stands before it.
const OF_ROCM_6: [(&str, &str); 9] = [
    ("hip_version.h", "#define HIP_VERSION_MAJOR 6"),
    ("hip_runtime.h", "#include <hip/hip_version.h>"),
    ("amd_detail/device_library_decls.h", "__device__ int one();"),
    ("amd_detail/hip_assert.h", "#define HALF 0.5f"),
    ("amd_detail/math_fwd.h", "__device__ float two();"),
    (
        "amd_detail/amd_warp_functions.h",
        "__device__ inline int of_wave() { return one(); }",
    ),
    (
        "amd_detail/amd_device_functions.h",
        "__device__ inline float of_group() { return of_wave() + HALF; }",
    ),
    (
        "amd_detail/amd_hip_atomic.h",
        "__device__ inline float of_memory() { return of_group(); }",
    ),
    (
        "amd_detail/amd_hip_fp16.h",
        "__device__ inline float of_half() { return of_memory() + two(); }",
    ),
];

#[test]
fn what_headers_of_rocm_6_leave_to_hiprtc_is_included() {
    if !has_compiler() {
        rocmforge_testkit::skip!("no clang++-22, clang++-19 or clang++ on the path, and none in ROCMFORGE_CLANG");
    }
    let folder = tempfile::tempdir().unwrap();
    let headers = folder.path().join("include/hip");
    std::fs::create_dir_all(headers.join("amd_detail")).unwrap();
    for (name, text) in OF_ROCM_6 {
        std::fs::write(headers.join(name), format!("#pragma once\n{text}\n")).unwrap();
    }
    std::fs::write(
        headers.join("amd_detail/amd_math_functions.h"),
        "__device__ inline float last() { return of_half(); }\n",
    )
    .unwrap();
    let mut program = create(
        c"#include \"factor.h\"\n__device__ int one() { return 1; } __device__ float two() { return 2; }\n\
        __global__ void k(float* x) { x[0] = last() + FACTOR; }",
    );
    let include = std::ffi::CString::new(format!("-I{}", folder.path().join("include").display())).unwrap();
    let options = [
        c"-DSIGN=-1".as_ptr(),
        c"--gpu-architecture=gfx1100".as_ptr(),
        include.as_ptr(),
    ];
    let status = hip!(hiprtcCompileProgram(program => Handle, 3 => c_int, options.as_ptr() => *const *const c_char));
    assert_eq!(status, super::SUCCESS, "{}", log(program));
    assert_eq!(hip!(hiprtcDestroyProgram(&raw mut program => *mut Handle)), 0);
}
