//! Every name of `libhipblas`, and those of `librocblas` that programs ask for, with the module that implements it.

use super::status::{NOT_SUPPORTED, Status};
use crate::absent;
use crate::names::Function;
use crate::stub_library::StubFunction;

/// The symbol of the table that the stub libraries jump through.
pub(crate) const TABLE: &str = "rocmforge_blas_functions";

/// A function by its name.
struct Entry {
    name: &'static str,
    function: Function,
}

/// Functions of our own modules.
macro_rules! supported {
    ($($module:ident { $($name:ident)* })*) => {
        &[$($(Entry { name: stringify!($name), function: Function(super::$module::$name as *const ()) },)*)*]
    };
}

/// Functions that are not supported: of each stem the names with these ends.
macro_rules! unsupported {
    ($($ends:tt { $($stem:ident)* })*) => { &[$($(unsupported!(@of $stem $ends),)*)*] };
    (@of $stem:ident [$($end:literal)*]) => {
        &[$({
            const NAME: &str = concat!(stringify!($stem), $end);
            unsafe extern "C" fn not_supported() -> Status {
                absent::count(NAME);
                NOT_SUPPORTED
            }
            Entry { name: NAME, function: Function(not_supported as *const ()) }
        },)*]
    };
}

const SUPPORTED: &[Entry] = supported! {
    status {
        hipblasStatusToString
    }
    handle {
        hipblasCreate hipblasDestroy hipblasSetStream hipblasGetStream hipblasSetPointerMode hipblasGetPointerMode hipblasSetMathMode
        hipblasGetMathMode hipblasSetAtomicsMode hipblasGetAtomicsMode rocblas_initialize
    }
    gemm_calls {
        hipblasSgemm hipblasSgemmBatched hipblasSgemmStridedBatched hipblasHgemm hipblasHgemmBatched hipblasHgemmStridedBatched
        hipblasDgemm hipblasDgemmBatched hipblasDgemmStridedBatched hipblasGemmEx hipblasGemmBatchedEx hipblasGemmStridedBatchedEx hipblasGemmEx_v2 hipblasGemmBatchedEx_v2
        hipblasGemmStridedBatchedEx_v2
    }
    trsm {
        hipblasStrsmBatched
    }
    vectors {
        hipblasDaxpy hipblasDdot hipblasDgemv hipblasDnrm2 hipblasDscal hipblasSaxpy hipblasSdot hipblasSgemv hipblasSnrm2
        hipblasSscal
    }
};

/// The variants of a function are named by rule: one matrix or many of them, the interface of hipBLAS 2, sizes of 64 bits. Look for the
/// stem here: `hipblasSgbmv` stands for `hipblasSgbmvBatched_64` as well.
const ABSENT: &[&[Entry]] = unsupported! {
    [
        "" "_64" "_v2" "_v2_64" "Batched" "Batched_64" "Batched_v2" "Batched_v2_64" "StridedBatched" "StridedBatched_64"
        "StridedBatched_v2" "StridedBatched_v2_64"
    ] {
        hipblasCaxpy hipblasCcopy hipblasCdgmm hipblasCdotc hipblasCdotu hipblasCgbmv hipblasCgeam hipblasCgemm hipblasCgemv
        hipblasCgerc hipblasCgeru hipblasChbmv hipblasChemm hipblasChemv hipblasCher hipblasCher2 hipblasCher2k hipblasCherk
        hipblasCherkx hipblasChpmv hipblasChpr hipblasChpr2 hipblasCrot hipblasCrotg hipblasCscal hipblasCspr hipblasCsrot
        hipblasCsscal hipblasCswap hipblasCsymm hipblasCsymv hipblasCsyr hipblasCsyr2 hipblasCsyr2k hipblasCsyrk hipblasCsyrkx
        hipblasCtbmv hipblasCtbsv hipblasCtpmv hipblasCtpsv hipblasCtrmm hipblasCtrmv hipblasCtrsm hipblasCtrsv hipblasDzasum
        hipblasDznrm2 hipblasIcamax hipblasIcamin hipblasIzamax hipblasIzamin hipblasScasum hipblasScnrm2 hipblasZaxpy
        hipblasZcopy hipblasZdgmm hipblasZdotc hipblasZdotu hipblasZdrot hipblasZdscal hipblasZgbmv hipblasZgeam hipblasZgemm
        hipblasZgemv hipblasZgerc hipblasZgeru hipblasZhbmv hipblasZhemm hipblasZhemv hipblasZher hipblasZher2 hipblasZher2k
        hipblasZherk hipblasZherkx hipblasZhpmv hipblasZhpr hipblasZhpr2 hipblasZrot hipblasZrotg hipblasZscal hipblasZspr
        hipblasZswap hipblasZsymm hipblasZsymv hipblasZsyr hipblasZsyr2 hipblasZsyr2k hipblasZsyrk hipblasZsyrkx hipblasZtbmv
        hipblasZtbsv hipblasZtpmv hipblasZtpsv hipblasZtrmm hipblasZtrmv hipblasZtrsm hipblasZtrsv
    }
    ["" "_64" "Batched" "Batched_64" "StridedBatched" "StridedBatched_64"] {
        hipblasBfdot hipblasDasum hipblasDcopy hipblasDdgmm hipblasDgbmv hipblasDgeam
        hipblasDger hipblasDrot hipblasDrotg hipblasDrotm hipblasDrotmg hipblasDsbmv
        hipblasDspmv hipblasDspr hipblasDspr2 hipblasDswap hipblasDsymm hipblasDsymv hipblasDsyr hipblasDsyr2 hipblasDsyr2k
        hipblasDsyrk hipblasDsyrkx hipblasDtbmv hipblasDtbsv hipblasDtpmv hipblasDtpsv hipblasDtrmm hipblasDtrmv hipblasDtrsm
        hipblasDtrsv hipblasHaxpy hipblasHdot hipblasIdamax hipblasIdamin hipblasIsamax hipblasIsamin hipblasSasum
        hipblasScopy hipblasSdgmm hipblasSgbmv hipblasSgeam hipblasSger hipblasSrot
        hipblasSrotg hipblasSrotm hipblasSrotmg hipblasSsbmv hipblasSspmv hipblasSspr hipblasSspr2 hipblasSswap
        hipblasSsymm hipblasSsymv hipblasSsyr hipblasSsyr2 hipblasSsyr2k hipblasSsyrk hipblasSsyrkx hipblasStbmv hipblasStbsv
        hipblasStpmv hipblasStpsv hipblasStrmm hipblasStrmv hipblasStrsv
    }
    [""] {
        hipblasGetMatrix hipblasGetMatrixAsync hipblasGetVector hipblasGetVectorAsync hipblasSetMatrix hipblasSetMatrixAsync
        hipblasSetVector hipblasSetVectorAsync rocblas_create_handle rocblas_destroy_handle rocblas_get_stream
        rocblas_set_stream rocblas_set_workspace
    }
    ["" "_v2" "Batched" "Batched_v2" "StridedBatched" "StridedBatched_v2"] {
        hipblasCgels hipblasCgeqrf hipblasCgetrf hipblasCgetrs hipblasCtrtri hipblasZgels hipblasZgeqrf hipblasZgetrf
        hipblasZgetrs hipblasZtrtri
    }
    ["" "Batched" "StridedBatched"] {
        hipblasDgels hipblasDgeqrf hipblasDgetrf hipblasDgetrs hipblasDtrtri hipblasSgels hipblasSgeqrf hipblasSgetrf
        hipblasSgetrs hipblasStrtri
    }
    [
        "Ex" "Ex_64" "Ex_v2" "Ex_v2_64" "BatchedEx" "BatchedEx_64" "BatchedEx_v2" "BatchedEx_v2_64" "StridedBatchedEx"
        "StridedBatchedEx_64" "StridedBatchedEx_v2" "StridedBatchedEx_v2_64"
    ] {
        hipblasAxpy hipblasDot hipblasDotc hipblasNrm2 hipblasRot hipblasScal
    }
    ["" "_64" "_v2" "_v2_64"] {
        hipblasGemmBatchedExWithFlags hipblasGemmExWithFlags hipblasGemmStridedBatchedExWithFlags
    }
    ["Batched" "Batched_v2"] {
        hipblasCgetri hipblasZgetri
    }
    ["Batched"] {
        hipblasDgetri hipblasSgetri
    }
    ["_64" "Batched" "Batched_64" "StridedBatched" "StridedBatched_64"] {
        hipblasDaxpy hipblasDdot hipblasDgemv hipblasDnrm2 hipblasDscal hipblasSaxpy hipblasSdot hipblasSgemv hipblasSnrm2
        hipblasSscal
    }
    ["_64" "Batched_64" "StridedBatched_64"] {
        hipblasDgemm hipblasHgemm hipblasSgemm
    }
    ["Ex_64" "Ex_v2_64" "BatchedEx_64" "BatchedEx_v2_64" "StridedBatchedEx_64" "StridedBatchedEx_v2_64"] {
        hipblasGemm
    }
    ["" "_64" "Batched_64" "StridedBatched" "StridedBatched_64"] {
        hipblasStrsm
    }
    ["Ex" "Ex_v2" "BatchedEx" "BatchedEx_v2" "StridedBatchedEx" "StridedBatchedEx_v2"] {
        hipblasTrsm
    }
};

const COUNT: usize = {
    let (mut count, mut stem) = (SUPPORTED.len(), 0);
    while stem < ABSENT.len() {
        count += ABSENT[stem].len();
        stem += 1;
    }
    count
};

#[unsafe(no_mangle)]
pub(crate) static rocmforge_blas_functions: [Function; COUNT] = {
    let mut table = [SUPPORTED[0].function; COUNT];
    let mut at = 0;
    while at < SUPPORTED.len() {
        table[at] = SUPPORTED[at].function;
        at += 1;
    }
    let mut stem = 0;
    while stem < ABSENT.len() {
        let mut end = 0;
        while end < ABSENT[stem].len() {
            table[at] = ABSENT[stem][end].function;
            (at, end) = (at + 1, end + 1);
        }
        stem += 1;
    }
    table
};

/// The functions of a stub library, by the start of their names.
pub(crate) fn stubs(start: &str) -> Vec<StubFunction<'static>> {
    let all = SUPPORTED.iter().chain(ABSENT.iter().copied().flatten()).enumerate();
    let stub = |(entry, &Entry { name, .. })| StubFunction { name, node: 0, entry };
    all.map(stub).filter(|stub| stub.name.starts_with(start)).collect()
}
