//! `cargo xtask bindings cuda`: compares what `rocmforge-nvidia` takes for granted with NVIDIA's headers, by a C++ program of
//! static assertions that is compiled and never linked.

use super::BindingsError;
use super::header::run as run_tool;
use crate::workspace_root;
use rocmforge_gpu_test::{Outcome, say};
use rocmforge_nvidia::abi;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(super) struct CudaArgs {
    /// The folder that holds cuda.h, and nvml.h if it is to be compared too.
    #[arg(long, default_value = "/usr/local/cuda/include")]
    include: PathBuf,
}

/// What an argument has to be. A status is an `Int<4>`, an enumeration too.
const PREDICATES: &str = r"
#include <cstddef>
#include <type_traits>
using namespace std;
template <size_t N> struct Int {
    template <class T> static constexpr bool ok = (is_integral_v<T> || is_enum_v<T>) && sizeof(T) == N;
};
struct Float { template <class T> static constexpr bool ok = is_same_v<T, float>; };
struct Void { template <class T> static constexpr bool ok = is_void_v<T>; };
template <size_t N> struct Struct { template <class T> static constexpr bool ok = is_class_v<T> && sizeof(T) == N; };
template <class P> struct Pointer {
    template <class T> static constexpr bool ok = [] {
        if constexpr (is_pointer_v<T>) return P::template ok<remove_cv_t<remove_pointer_t<T>>>;
        else return false;
    }();
};
struct Handle {
    template <class T> static constexpr bool ok = is_pointer_v<T> && is_class_v<remove_pointer_t<T>>;
};
// NVML wraps its handles in a struct; a function gets them the same way.
struct Device {
    template <class T> static constexpr bool ok = (is_pointer_v<T> || is_class_v<T>) && sizeof(T) == sizeof(void *);
};
struct Callback {
    template <class T> static constexpr bool ok = is_pointer_v<T> && is_function_v<remove_pointer_t<T>>;
};
template <class F> struct Function;
template <class R, class... A> struct Function<R (*)(A...)> {
    template <class... P> static constexpr bool is() {
        if constexpr (sizeof...(A) != sizeof...(P)) return false;
        else return Int<4>::ok<R> && (P::template ok<A> && ...);
    }
};
";

/// The predicate for a type of the lists.
fn predicate(rust: &str) -> Option<String> {
    let rust = rust.trim();
    if let Some(pointee) = rust.strip_prefix("*mut ").or_else(|| rust.strip_prefix("*const ")) {
        return Some(format!("Pointer<{}>", predicate(pointee)?));
    }
    let plain = match rust {
        "c_int" | "c_uint" | "CuDevice" => "Int<4>",
        "usize" | "u64" | "CuAddress" => "Int<8>",
        "u8" | "c_char" => "Int<1>",
        "f32" => "Float",
        "c_void" => "Void",
        "Handle" => "Handle",
        "Device" => "Device",
        "HostFunction" => "Callback",
        name => {
            let (_, size) = abi::STRUCTS.iter().find(|(known, _)| *known == name)?;
            return Some(format!("Struct<{size}>"));
        }
    };
    Some(plain.to_owned())
}

/// The assertions: one a function, one a constant.
fn program(header: &str, functions: &[abi::Function], constants: &[(String, u64)]) -> Result<String, BindingsError> {
    // Without this, cuda.h renames functions to their newest versions, and hides the others.
    let mut text = format!("#define __CUDA_API_VERSION_INTERNAL\n#include <{header}>\n{PREDICATES}");
    for function in functions {
        let args: Option<Vec<String>> = function.args.iter().map(|arg| predicate(arg)).collect();
        let args = args
            .ok_or_else(|| BindingsError::Answer(format!("{function:?}")))?
            .join(", ");
        let name = function.name;
        text += &format!("static_assert(Function<decltype(&{name})>::is<{args}>(), \"{name}\");\n");
    }
    for (name, value) in constants {
        text += &format!("static_assert(({name}) == {value}, \"{name}\");\n");
    }
    Ok(text)
}

pub(super) fn run(args: CudaArgs) -> Outcome {
    let compared = compare(&args.include, "cuda.h", abi::CUDA_FUNCTIONS, &abi::cuda_constants())?;
    say!("{compared}");
    if args.include.join("nvml.h").is_file() {
        let compared = compare(&args.include, "nvml.h", abi::NVML_FUNCTIONS, &abi::nvml_constants())?;
        say!("{compared}");
    } else {
        say!("SKIP nvml.h: it is not in {}", args.include.display());
    }
    Ok(())
}

fn compare(
    include: &Path,
    header: &'static str,
    functions: &[abi::Function],
    constants: &[(String, u64)],
) -> Result<String, BindingsError> {
    if !include.join(header).is_file() {
        let tried = include.display().to_string();
        return Err(BindingsError::CudaAbsent { header, tried });
    }
    let folder = workspace_root().join("target");
    let path = folder.join(format!("bindings-{header}-{}.cpp", std::process::id()));
    let text = program(header, functions, constants)?;
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|source| BindingsError::Write {
            path: path.clone(),
            source,
        })?;
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    command
        .args(["-std=c++17", "-fsyntax-only", "-Wno-deprecated-declarations", "-I"])
        .arg(include)
        .arg(&path);
    let checked = run_tool(command, header);
    // Best effort: a leftover under target/ is harmless.
    let _ = std::fs::remove_file(&path);
    checked?;
    Ok(format!(
        "{header} in {}: {} functions and {} constants agree",
        include.display(),
        functions.len(),
        constants.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "
        typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_READY = 600 } CUresult;
        typedef struct CUstream_st *CUstream;
        typedef unsigned long long CUdeviceptr;
        extern \"C\" CUresult cuStreamQuery(CUstream stream);
        extern \"C\" CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
    ";

    const QUERY: abi::Function = abi::Function {
        name: "cuStreamQuery",
        args: &["Handle"],
    };
    const ALLOCATE: abi::Function = abi::Function {
        name: "cuMemAlloc_v2",
        args: &["*mut CuAddress", "usize"],
    };

    fn found(functions: &[abi::Function], constant: (&str, u64)) -> Result<String, BindingsError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cuda.h"), format!("#include <stddef.h>{HEADER}")).unwrap();
        compare(
            folder.path(),
            "cuda.h",
            functions,
            &[(constant.0.to_owned(), constant.1)],
        )
    }

    #[test]
    fn what_agrees_is_counted_and_what_differs_is_named() {
        let ready = ("CUDA_ERROR_NOT_READY", 600);
        let text = found(&[QUERY, ALLOCATE], ready).unwrap();
        assert!(text.ends_with("2 functions and 1 constants agree"), "{text}");
        let with = |args| abi::Function { args, ..ALLOCATE };
        for wrong in [
            with(&["*mut CuAddress"]),
            with(&["*mut CuAddress", "c_uint"]),
            with(&["*mut c_uint", "usize"]),
            with(&["Handle", "usize"]),
            with(&["*mut *mut c_void", "usize"]),
        ] {
            let error = found(&[QUERY, wrong], ready).unwrap_err().to_string();
            assert!(
                error.contains("static assertion failed") || error.contains("static_assert"),
                "{error}"
            );
            assert!(error.contains("cuMemAlloc_v2"), "{error}");
        }
        let error = found(&[QUERY], ("CUDA_ERROR_NOT_READY", 601)).unwrap_err().to_string();
        assert!(error.contains("CUDA_ERROR_NOT_READY"), "{error}");
        let unknown = abi::Function {
            name: "cuStreamQuery",
            args: &["Unheard"],
        };
        assert!(matches!(found(&[unknown], ready), Err(BindingsError::Answer(_))));
    }

    #[test]
    fn every_type_of_the_lists_has_a_meaning() {
        for function in abi::CUDA_FUNCTIONS.iter().chain(abi::NVML_FUNCTIONS) {
            for arg in function.args {
                assert!(predicate(arg).is_some(), "{}: {arg}", function.name);
            }
        }
    }

    #[test]
    fn a_folder_without_the_header_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = compare(folder.path(), "cuda.h", &[], &[]).unwrap_err();
        assert!(
            matches!(&error, BindingsError::CudaAbsent { tried, .. } if tried.contains(&*folder.path().to_string_lossy())),
            "{error}"
        );
    }
}
