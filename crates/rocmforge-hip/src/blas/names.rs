//! Every name of `libhipblas`, and those of `librocblas` that programs ask for, with the module that implements it.

use crate::absent;
use crate::names::Function;
use crate::stub_library::StubFunction;

/// The symbol of the table that the stub libraries jump through.
pub(crate) const TABLE: &str = "rocmforge_blas_functions";

macro_rules! names {
    ({ $($module:ident { $($name:ident)* })* } absent { $($absent:ident)* }) => {
        /// All names, in the order of the table.
        static NAMES: &[&str] = &[$($(stringify!($name),)*)* $(stringify!($absent),)*];

        #[unsafe(no_mangle)]
        pub(crate) static rocmforge_blas_functions: [Function; NAMES.len()] = [
            $($(Function(super::$module::$name as *const ()),)*)*
            $(Function({
                unsafe extern "C" fn not_supported() -> super::status::Status {
                    absent::count(stringify!($absent));
                    super::status::NOT_SUPPORTED
                }
                not_supported as *const ()
            }),)*
        ];
    };
}

/// The functions of a stub library, by the start of their names.
pub(crate) fn stubs(start: &str) -> Vec<StubFunction<'static>> {
    let all = NAMES.iter().enumerate().filter(|(_, name)| name.starts_with(start));
    all.map(|(entry, name)| StubFunction { name, node: 0, entry }).collect()
}

names! {
    {
        status {
            hipblasStatusToString
        }
        handle {
            hipblasCreate hipblasDestroy hipblasSetStream hipblasGetStream hipblasSetPointerMode hipblasGetPointerMode hipblasSetMathMode
            hipblasGetMathMode hipblasSetAtomicsMode hipblasGetAtomicsMode rocblas_initialize
        }
        gemm_calls {
            hipblasSgemm hipblasSgemmBatched hipblasSgemmStridedBatched hipblasHgemm hipblasHgemmBatched hipblasHgemmStridedBatched
            hipblasGemmEx hipblasGemmBatchedEx hipblasGemmStridedBatchedEx hipblasGemmEx_v2 hipblasGemmBatchedEx_v2
            hipblasGemmStridedBatchedEx_v2
        }
        trsm {
            hipblasStrsmBatched
        }
    }
    absent {
        rocblas_create_handle rocblas_destroy_handle rocblas_get_stream rocblas_set_stream rocblas_set_workspace
        hipblasAxpyBatchedEx hipblasAxpyBatchedEx_64 hipblasAxpyBatchedEx_v2 hipblasAxpyBatchedEx_v2_64 hipblasAxpyEx
        hipblasAxpyEx_64 hipblasAxpyEx_v2 hipblasAxpyEx_v2_64 hipblasAxpyStridedBatchedEx hipblasAxpyStridedBatchedEx_64
        hipblasAxpyStridedBatchedEx_v2 hipblasAxpyStridedBatchedEx_v2_64 hipblasBfdot hipblasBfdotBatched hipblasBfdotBatched_64
        hipblasBfdotStridedBatched hipblasBfdotStridedBatched_64 hipblasBfdot_64 hipblasCaxpy hipblasCaxpyBatched
        hipblasCaxpyBatched_64 hipblasCaxpyBatched_v2 hipblasCaxpyBatched_v2_64 hipblasCaxpyStridedBatched
        hipblasCaxpyStridedBatched_64 hipblasCaxpyStridedBatched_v2 hipblasCaxpyStridedBatched_v2_64 hipblasCaxpy_64 hipblasCaxpy_v2
        hipblasCaxpy_v2_64 hipblasCcopy hipblasCcopyBatched hipblasCcopyBatched_64 hipblasCcopyBatched_v2 hipblasCcopyBatched_v2_64
        hipblasCcopyStridedBatched hipblasCcopyStridedBatched_64 hipblasCcopyStridedBatched_v2 hipblasCcopyStridedBatched_v2_64
        hipblasCcopy_64 hipblasCcopy_v2 hipblasCcopy_v2_64 hipblasCdgmm hipblasCdgmmBatched hipblasCdgmmBatched_64
        hipblasCdgmmBatched_v2 hipblasCdgmmBatched_v2_64 hipblasCdgmmStridedBatched hipblasCdgmmStridedBatched_64
        hipblasCdgmmStridedBatched_v2 hipblasCdgmmStridedBatched_v2_64 hipblasCdgmm_64 hipblasCdgmm_v2 hipblasCdgmm_v2_64
        hipblasCdotc hipblasCdotcBatched hipblasCdotcBatched_64 hipblasCdotcBatched_v2 hipblasCdotcBatched_v2_64
        hipblasCdotcStridedBatched hipblasCdotcStridedBatched_64 hipblasCdotcStridedBatched_v2 hipblasCdotcStridedBatched_v2_64
        hipblasCdotc_64 hipblasCdotc_v2 hipblasCdotc_v2_64 hipblasCdotu hipblasCdotuBatched hipblasCdotuBatched_64
        hipblasCdotuBatched_v2 hipblasCdotuBatched_v2_64 hipblasCdotuStridedBatched hipblasCdotuStridedBatched_64
        hipblasCdotuStridedBatched_v2 hipblasCdotuStridedBatched_v2_64 hipblasCdotu_64 hipblasCdotu_v2 hipblasCdotu_v2_64
        hipblasCgbmv hipblasCgbmvBatched hipblasCgbmvBatched_64 hipblasCgbmvBatched_v2 hipblasCgbmvBatched_v2_64
        hipblasCgbmvStridedBatched hipblasCgbmvStridedBatched_64 hipblasCgbmvStridedBatched_v2 hipblasCgbmvStridedBatched_v2_64
        hipblasCgbmv_64 hipblasCgbmv_v2 hipblasCgbmv_v2_64 hipblasCgeam hipblasCgeamBatched hipblasCgeamBatched_64
        hipblasCgeamBatched_v2 hipblasCgeamBatched_v2_64 hipblasCgeamStridedBatched hipblasCgeamStridedBatched_64
        hipblasCgeamStridedBatched_v2 hipblasCgeamStridedBatched_v2_64 hipblasCgeam_64 hipblasCgeam_v2 hipblasCgeam_v2_64
        hipblasCgels hipblasCgelsBatched hipblasCgelsBatched_v2 hipblasCgelsStridedBatched hipblasCgelsStridedBatched_v2
        hipblasCgels_v2 hipblasCgemm hipblasCgemmBatched hipblasCgemmBatched_64 hipblasCgemmBatched_v2 hipblasCgemmBatched_v2_64
        hipblasCgemmStridedBatched hipblasCgemmStridedBatched_64 hipblasCgemmStridedBatched_v2 hipblasCgemmStridedBatched_v2_64
        hipblasCgemm_64 hipblasCgemm_v2 hipblasCgemm_v2_64 hipblasCgemv hipblasCgemvBatched hipblasCgemvBatched_64
        hipblasCgemvBatched_v2 hipblasCgemvBatched_v2_64 hipblasCgemvStridedBatched hipblasCgemvStridedBatched_64
        hipblasCgemvStridedBatched_v2 hipblasCgemvStridedBatched_v2_64 hipblasCgemv_64 hipblasCgemv_v2 hipblasCgemv_v2_64
        hipblasCgeqrf hipblasCgeqrfBatched hipblasCgeqrfBatched_v2 hipblasCgeqrfStridedBatched hipblasCgeqrfStridedBatched_v2
        hipblasCgeqrf_v2 hipblasCgerc hipblasCgercBatched hipblasCgercBatched_64 hipblasCgercBatched_v2 hipblasCgercBatched_v2_64
        hipblasCgercStridedBatched hipblasCgercStridedBatched_64 hipblasCgercStridedBatched_v2 hipblasCgercStridedBatched_v2_64
        hipblasCgerc_64 hipblasCgerc_v2 hipblasCgerc_v2_64 hipblasCgeru hipblasCgeruBatched hipblasCgeruBatched_64
        hipblasCgeruBatched_v2 hipblasCgeruBatched_v2_64 hipblasCgeruStridedBatched hipblasCgeruStridedBatched_64
        hipblasCgeruStridedBatched_v2 hipblasCgeruStridedBatched_v2_64 hipblasCgeru_64 hipblasCgeru_v2 hipblasCgeru_v2_64
        hipblasCgetrf hipblasCgetrfBatched hipblasCgetrfBatched_v2 hipblasCgetrfStridedBatched hipblasCgetrfStridedBatched_v2
        hipblasCgetrf_v2 hipblasCgetriBatched hipblasCgetriBatched_v2 hipblasCgetrs hipblasCgetrsBatched hipblasCgetrsBatched_v2
        hipblasCgetrsStridedBatched hipblasCgetrsStridedBatched_v2 hipblasCgetrs_v2 hipblasChbmv hipblasChbmvBatched
        hipblasChbmvBatched_64 hipblasChbmvBatched_v2 hipblasChbmvBatched_v2_64 hipblasChbmvStridedBatched
        hipblasChbmvStridedBatched_64 hipblasChbmvStridedBatched_v2 hipblasChbmvStridedBatched_v2_64 hipblasChbmv_64 hipblasChbmv_v2
        hipblasChbmv_v2_64 hipblasChemm hipblasChemmBatched hipblasChemmBatched_64 hipblasChemmBatched_v2 hipblasChemmBatched_v2_64
        hipblasChemmStridedBatched hipblasChemmStridedBatched_64 hipblasChemmStridedBatched_v2 hipblasChemmStridedBatched_v2_64
        hipblasChemm_64 hipblasChemm_v2 hipblasChemm_v2_64 hipblasChemv hipblasChemvBatched hipblasChemvBatched_64
        hipblasChemvBatched_v2 hipblasChemvBatched_v2_64 hipblasChemvStridedBatched hipblasChemvStridedBatched_64
        hipblasChemvStridedBatched_v2 hipblasChemvStridedBatched_v2_64 hipblasChemv_64 hipblasChemv_v2 hipblasChemv_v2_64 hipblasCher
        hipblasCher2 hipblasCher2Batched hipblasCher2Batched_64 hipblasCher2Batched_v2 hipblasCher2Batched_v2_64
        hipblasCher2StridedBatched hipblasCher2StridedBatched_64 hipblasCher2StridedBatched_v2 hipblasCher2StridedBatched_v2_64
        hipblasCher2_64 hipblasCher2_v2 hipblasCher2_v2_64 hipblasCher2k hipblasCher2kBatched hipblasCher2kBatched_64
        hipblasCher2kBatched_v2 hipblasCher2kBatched_v2_64 hipblasCher2kStridedBatched hipblasCher2kStridedBatched_64
        hipblasCher2kStridedBatched_v2 hipblasCher2kStridedBatched_v2_64 hipblasCher2k_64 hipblasCher2k_v2 hipblasCher2k_v2_64
        hipblasCherBatched hipblasCherBatched_64 hipblasCherBatched_v2 hipblasCherBatched_v2_64 hipblasCherStridedBatched
        hipblasCherStridedBatched_64 hipblasCherStridedBatched_v2 hipblasCherStridedBatched_v2_64 hipblasCher_64 hipblasCher_v2
        hipblasCher_v2_64 hipblasCherk hipblasCherkBatched hipblasCherkBatched_64 hipblasCherkBatched_v2 hipblasCherkBatched_v2_64
        hipblasCherkStridedBatched hipblasCherkStridedBatched_64 hipblasCherkStridedBatched_v2 hipblasCherkStridedBatched_v2_64
        hipblasCherk_64 hipblasCherk_v2 hipblasCherk_v2_64 hipblasCherkx hipblasCherkxBatched hipblasCherkxBatched_64
        hipblasCherkxBatched_v2 hipblasCherkxBatched_v2_64 hipblasCherkxStridedBatched hipblasCherkxStridedBatched_64
        hipblasCherkxStridedBatched_v2 hipblasCherkxStridedBatched_v2_64 hipblasCherkx_64 hipblasCherkx_v2 hipblasCherkx_v2_64
        hipblasChpmv hipblasChpmvBatched hipblasChpmvBatched_64 hipblasChpmvBatched_v2 hipblasChpmvBatched_v2_64
        hipblasChpmvStridedBatched hipblasChpmvStridedBatched_64 hipblasChpmvStridedBatched_v2 hipblasChpmvStridedBatched_v2_64
        hipblasChpmv_64 hipblasChpmv_v2 hipblasChpmv_v2_64 hipblasChpr hipblasChpr2 hipblasChpr2Batched hipblasChpr2Batched_64
        hipblasChpr2Batched_v2 hipblasChpr2Batched_v2_64 hipblasChpr2StridedBatched hipblasChpr2StridedBatched_64
        hipblasChpr2StridedBatched_v2 hipblasChpr2StridedBatched_v2_64 hipblasChpr2_64 hipblasChpr2_v2 hipblasChpr2_v2_64
        hipblasChprBatched hipblasChprBatched_64 hipblasChprBatched_v2 hipblasChprBatched_v2_64 hipblasChprStridedBatched
        hipblasChprStridedBatched_64 hipblasChprStridedBatched_v2 hipblasChprStridedBatched_v2_64 hipblasChpr_64 hipblasChpr_v2
        hipblasChpr_v2_64 hipblasCrot hipblasCrotBatched hipblasCrotBatched_64 hipblasCrotBatched_v2 hipblasCrotBatched_v2_64
        hipblasCrotStridedBatched hipblasCrotStridedBatched_64 hipblasCrotStridedBatched_v2 hipblasCrotStridedBatched_v2_64
        hipblasCrot_64 hipblasCrot_v2 hipblasCrot_v2_64 hipblasCrotg hipblasCrotgBatched hipblasCrotgBatched_64
        hipblasCrotgBatched_v2 hipblasCrotgBatched_v2_64 hipblasCrotgStridedBatched hipblasCrotgStridedBatched_64
        hipblasCrotgStridedBatched_v2 hipblasCrotgStridedBatched_v2_64 hipblasCrotg_64 hipblasCrotg_v2 hipblasCrotg_v2_64
        hipblasCscal hipblasCscalBatched hipblasCscalBatched_64 hipblasCscalBatched_v2 hipblasCscalBatched_v2_64
        hipblasCscalStridedBatched hipblasCscalStridedBatched_64 hipblasCscalStridedBatched_v2 hipblasCscalStridedBatched_v2_64
        hipblasCscal_64 hipblasCscal_v2 hipblasCscal_v2_64 hipblasCspr hipblasCsprBatched hipblasCsprBatched_64 hipblasCsprBatched_v2
        hipblasCsprBatched_v2_64 hipblasCsprStridedBatched hipblasCsprStridedBatched_64 hipblasCsprStridedBatched_v2
        hipblasCsprStridedBatched_v2_64 hipblasCspr_64 hipblasCspr_v2 hipblasCspr_v2_64 hipblasCsrot hipblasCsrotBatched
        hipblasCsrotBatched_64 hipblasCsrotBatched_v2 hipblasCsrotBatched_v2_64 hipblasCsrotStridedBatched
        hipblasCsrotStridedBatched_64 hipblasCsrotStridedBatched_v2 hipblasCsrotStridedBatched_v2_64 hipblasCsrot_64 hipblasCsrot_v2
        hipblasCsrot_v2_64 hipblasCsscal hipblasCsscalBatched hipblasCsscalBatched_64 hipblasCsscalBatched_v2
        hipblasCsscalBatched_v2_64 hipblasCsscalStridedBatched hipblasCsscalStridedBatched_64 hipblasCsscalStridedBatched_v2
        hipblasCsscalStridedBatched_v2_64 hipblasCsscal_64 hipblasCsscal_v2 hipblasCsscal_v2_64 hipblasCswap hipblasCswapBatched
        hipblasCswapBatched_64 hipblasCswapBatched_v2 hipblasCswapBatched_v2_64 hipblasCswapStridedBatched
        hipblasCswapStridedBatched_64 hipblasCswapStridedBatched_v2 hipblasCswapStridedBatched_v2_64 hipblasCswap_64 hipblasCswap_v2
        hipblasCswap_v2_64 hipblasCsymm hipblasCsymmBatched hipblasCsymmBatched_64 hipblasCsymmBatched_v2 hipblasCsymmBatched_v2_64
        hipblasCsymmStridedBatched hipblasCsymmStridedBatched_64 hipblasCsymmStridedBatched_v2 hipblasCsymmStridedBatched_v2_64
        hipblasCsymm_64 hipblasCsymm_v2 hipblasCsymm_v2_64 hipblasCsymv hipblasCsymvBatched hipblasCsymvBatched_64
        hipblasCsymvBatched_v2 hipblasCsymvBatched_v2_64 hipblasCsymvStridedBatched hipblasCsymvStridedBatched_64
        hipblasCsymvStridedBatched_v2 hipblasCsymvStridedBatched_v2_64 hipblasCsymv_64 hipblasCsymv_v2 hipblasCsymv_v2_64 hipblasCsyr
        hipblasCsyr2 hipblasCsyr2Batched hipblasCsyr2Batched_64 hipblasCsyr2Batched_v2 hipblasCsyr2Batched_v2_64
        hipblasCsyr2StridedBatched hipblasCsyr2StridedBatched_64 hipblasCsyr2StridedBatched_v2 hipblasCsyr2StridedBatched_v2_64
        hipblasCsyr2_64 hipblasCsyr2_v2 hipblasCsyr2_v2_64 hipblasCsyr2k hipblasCsyr2kBatched hipblasCsyr2kBatched_64
        hipblasCsyr2kBatched_v2 hipblasCsyr2kBatched_v2_64 hipblasCsyr2kStridedBatched hipblasCsyr2kStridedBatched_64
        hipblasCsyr2kStridedBatched_v2 hipblasCsyr2kStridedBatched_v2_64 hipblasCsyr2k_64 hipblasCsyr2k_v2 hipblasCsyr2k_v2_64
        hipblasCsyrBatched hipblasCsyrBatched_64 hipblasCsyrBatched_v2 hipblasCsyrBatched_v2_64 hipblasCsyrStridedBatched
        hipblasCsyrStridedBatched_64 hipblasCsyrStridedBatched_v2 hipblasCsyrStridedBatched_v2_64 hipblasCsyr_64 hipblasCsyr_v2
        hipblasCsyr_v2_64 hipblasCsyrk hipblasCsyrkBatched hipblasCsyrkBatched_64 hipblasCsyrkBatched_v2 hipblasCsyrkBatched_v2_64
        hipblasCsyrkStridedBatched hipblasCsyrkStridedBatched_64 hipblasCsyrkStridedBatched_v2 hipblasCsyrkStridedBatched_v2_64
        hipblasCsyrk_64 hipblasCsyrk_v2 hipblasCsyrk_v2_64 hipblasCsyrkx hipblasCsyrkxBatched hipblasCsyrkxBatched_64
        hipblasCsyrkxBatched_v2 hipblasCsyrkxBatched_v2_64 hipblasCsyrkxStridedBatched hipblasCsyrkxStridedBatched_64
        hipblasCsyrkxStridedBatched_v2 hipblasCsyrkxStridedBatched_v2_64 hipblasCsyrkx_64 hipblasCsyrkx_v2 hipblasCsyrkx_v2_64
        hipblasCtbmv hipblasCtbmvBatched hipblasCtbmvBatched_64 hipblasCtbmvBatched_v2 hipblasCtbmvBatched_v2_64
        hipblasCtbmvStridedBatched hipblasCtbmvStridedBatched_64 hipblasCtbmvStridedBatched_v2 hipblasCtbmvStridedBatched_v2_64
        hipblasCtbmv_64 hipblasCtbmv_v2 hipblasCtbmv_v2_64 hipblasCtbsv hipblasCtbsvBatched hipblasCtbsvBatched_64
        hipblasCtbsvBatched_v2 hipblasCtbsvBatched_v2_64 hipblasCtbsvStridedBatched hipblasCtbsvStridedBatched_64
        hipblasCtbsvStridedBatched_v2 hipblasCtbsvStridedBatched_v2_64 hipblasCtbsv_64 hipblasCtbsv_v2 hipblasCtbsv_v2_64
        hipblasCtpmv hipblasCtpmvBatched hipblasCtpmvBatched_64 hipblasCtpmvBatched_v2 hipblasCtpmvBatched_v2_64
        hipblasCtpmvStridedBatched hipblasCtpmvStridedBatched_64 hipblasCtpmvStridedBatched_v2 hipblasCtpmvStridedBatched_v2_64
        hipblasCtpmv_64 hipblasCtpmv_v2 hipblasCtpmv_v2_64 hipblasCtpsv hipblasCtpsvBatched hipblasCtpsvBatched_64
        hipblasCtpsvBatched_v2 hipblasCtpsvBatched_v2_64 hipblasCtpsvStridedBatched hipblasCtpsvStridedBatched_64
        hipblasCtpsvStridedBatched_v2 hipblasCtpsvStridedBatched_v2_64 hipblasCtpsv_64 hipblasCtpsv_v2 hipblasCtpsv_v2_64
        hipblasCtrmm hipblasCtrmmBatched hipblasCtrmmBatched_64 hipblasCtrmmBatched_v2 hipblasCtrmmBatched_v2_64
        hipblasCtrmmStridedBatched hipblasCtrmmStridedBatched_64 hipblasCtrmmStridedBatched_v2 hipblasCtrmmStridedBatched_v2_64
        hipblasCtrmm_64 hipblasCtrmm_v2 hipblasCtrmm_v2_64 hipblasCtrmv hipblasCtrmvBatched hipblasCtrmvBatched_64
        hipblasCtrmvBatched_v2 hipblasCtrmvBatched_v2_64 hipblasCtrmvStridedBatched hipblasCtrmvStridedBatched_64
        hipblasCtrmvStridedBatched_v2 hipblasCtrmvStridedBatched_v2_64 hipblasCtrmv_64 hipblasCtrmv_v2 hipblasCtrmv_v2_64
        hipblasCtrsm hipblasCtrsmBatched hipblasCtrsmBatched_64 hipblasCtrsmBatched_v2 hipblasCtrsmBatched_v2_64
        hipblasCtrsmStridedBatched hipblasCtrsmStridedBatched_64 hipblasCtrsmStridedBatched_v2 hipblasCtrsmStridedBatched_v2_64
        hipblasCtrsm_64 hipblasCtrsm_v2 hipblasCtrsm_v2_64 hipblasCtrsv hipblasCtrsvBatched hipblasCtrsvBatched_64
        hipblasCtrsvBatched_v2 hipblasCtrsvBatched_v2_64 hipblasCtrsvStridedBatched hipblasCtrsvStridedBatched_64
        hipblasCtrsvStridedBatched_v2 hipblasCtrsvStridedBatched_v2_64 hipblasCtrsv_64 hipblasCtrsv_v2 hipblasCtrsv_v2_64
        hipblasCtrtri hipblasCtrtriBatched hipblasCtrtriBatched_v2 hipblasCtrtriStridedBatched hipblasCtrtriStridedBatched_v2
        hipblasCtrtri_v2 hipblasDasum hipblasDasumBatched hipblasDasumBatched_64 hipblasDasumStridedBatched
        hipblasDasumStridedBatched_64 hipblasDasum_64 hipblasDaxpy hipblasDaxpyBatched hipblasDaxpyBatched_64
        hipblasDaxpyStridedBatched hipblasDaxpyStridedBatched_64 hipblasDaxpy_64 hipblasDcopy hipblasDcopyBatched
        hipblasDcopyBatched_64 hipblasDcopyStridedBatched hipblasDcopyStridedBatched_64 hipblasDcopy_64 hipblasDdgmm
        hipblasDdgmmBatched hipblasDdgmmBatched_64 hipblasDdgmmStridedBatched hipblasDdgmmStridedBatched_64 hipblasDdgmm_64
        hipblasDdot hipblasDdotBatched hipblasDdotBatched_64 hipblasDdotStridedBatched hipblasDdotStridedBatched_64 hipblasDdot_64
        hipblasDgbmv hipblasDgbmvBatched hipblasDgbmvBatched_64 hipblasDgbmvStridedBatched hipblasDgbmvStridedBatched_64
        hipblasDgbmv_64 hipblasDgeam hipblasDgeamBatched hipblasDgeamBatched_64 hipblasDgeamStridedBatched
        hipblasDgeamStridedBatched_64 hipblasDgeam_64 hipblasDgels hipblasDgelsBatched hipblasDgelsStridedBatched hipblasDgemm
        hipblasDgemmBatched hipblasDgemmBatched_64 hipblasDgemmStridedBatched hipblasDgemmStridedBatched_64 hipblasDgemm_64
        hipblasDgemv hipblasDgemvBatched hipblasDgemvBatched_64 hipblasDgemvStridedBatched hipblasDgemvStridedBatched_64
        hipblasDgemv_64 hipblasDgeqrf hipblasDgeqrfBatched hipblasDgeqrfStridedBatched hipblasDger hipblasDgerBatched
        hipblasDgerBatched_64 hipblasDgerStridedBatched hipblasDgerStridedBatched_64 hipblasDger_64 hipblasDgetrf
        hipblasDgetrfBatched hipblasDgetrfStridedBatched hipblasDgetriBatched hipblasDgetrs hipblasDgetrsBatched
        hipblasDgetrsStridedBatched hipblasDnrm2 hipblasDnrm2Batched hipblasDnrm2Batched_64 hipblasDnrm2StridedBatched
        hipblasDnrm2StridedBatched_64 hipblasDnrm2_64 hipblasDotBatchedEx hipblasDotBatchedEx_64 hipblasDotBatchedEx_v2
        hipblasDotBatchedEx_v2_64 hipblasDotEx hipblasDotEx_64 hipblasDotEx_v2 hipblasDotEx_v2_64 hipblasDotStridedBatchedEx
        hipblasDotStridedBatchedEx_64 hipblasDotStridedBatchedEx_v2 hipblasDotStridedBatchedEx_v2_64 hipblasDotcBatchedEx
        hipblasDotcBatchedEx_64 hipblasDotcBatchedEx_v2 hipblasDotcBatchedEx_v2_64 hipblasDotcEx hipblasDotcEx_64 hipblasDotcEx_v2
        hipblasDotcEx_v2_64 hipblasDotcStridedBatchedEx hipblasDotcStridedBatchedEx_64 hipblasDotcStridedBatchedEx_v2
        hipblasDotcStridedBatchedEx_v2_64 hipblasDrot hipblasDrotBatched hipblasDrotBatched_64 hipblasDrotStridedBatched
        hipblasDrotStridedBatched_64 hipblasDrot_64 hipblasDrotg hipblasDrotgBatched hipblasDrotgBatched_64
        hipblasDrotgStridedBatched hipblasDrotgStridedBatched_64 hipblasDrotg_64 hipblasDrotm hipblasDrotmBatched
        hipblasDrotmBatched_64 hipblasDrotmStridedBatched hipblasDrotmStridedBatched_64 hipblasDrotm_64 hipblasDrotmg
        hipblasDrotmgBatched hipblasDrotmgBatched_64 hipblasDrotmgStridedBatched hipblasDrotmgStridedBatched_64 hipblasDrotmg_64
        hipblasDsbmv hipblasDsbmvBatched hipblasDsbmvBatched_64 hipblasDsbmvStridedBatched hipblasDsbmvStridedBatched_64
        hipblasDsbmv_64 hipblasDscal hipblasDscalBatched hipblasDscalBatched_64 hipblasDscalStridedBatched
        hipblasDscalStridedBatched_64 hipblasDscal_64 hipblasDspmv hipblasDspmvBatched hipblasDspmvBatched_64
        hipblasDspmvStridedBatched hipblasDspmvStridedBatched_64 hipblasDspmv_64 hipblasDspr hipblasDspr2 hipblasDspr2Batched
        hipblasDspr2Batched_64 hipblasDspr2StridedBatched hipblasDspr2StridedBatched_64 hipblasDspr2_64 hipblasDsprBatched
        hipblasDsprBatched_64 hipblasDsprStridedBatched hipblasDsprStridedBatched_64 hipblasDspr_64 hipblasDswap hipblasDswapBatched
        hipblasDswapBatched_64 hipblasDswapStridedBatched hipblasDswapStridedBatched_64 hipblasDswap_64 hipblasDsymm
        hipblasDsymmBatched hipblasDsymmBatched_64 hipblasDsymmStridedBatched hipblasDsymmStridedBatched_64 hipblasDsymm_64
        hipblasDsymv hipblasDsymvBatched hipblasDsymvBatched_64 hipblasDsymvStridedBatched hipblasDsymvStridedBatched_64
        hipblasDsymv_64 hipblasDsyr hipblasDsyr2 hipblasDsyr2Batched hipblasDsyr2Batched_64 hipblasDsyr2StridedBatched
        hipblasDsyr2StridedBatched_64 hipblasDsyr2_64 hipblasDsyr2k hipblasDsyr2kBatched hipblasDsyr2kBatched_64
        hipblasDsyr2kStridedBatched hipblasDsyr2kStridedBatched_64 hipblasDsyr2k_64 hipblasDsyrBatched hipblasDsyrBatched_64
        hipblasDsyrStridedBatched hipblasDsyrStridedBatched_64 hipblasDsyr_64 hipblasDsyrk hipblasDsyrkBatched hipblasDsyrkBatched_64
        hipblasDsyrkStridedBatched hipblasDsyrkStridedBatched_64 hipblasDsyrk_64 hipblasDsyrkx hipblasDsyrkxBatched
        hipblasDsyrkxBatched_64 hipblasDsyrkxStridedBatched hipblasDsyrkxStridedBatched_64 hipblasDsyrkx_64 hipblasDtbmv
        hipblasDtbmvBatched hipblasDtbmvBatched_64 hipblasDtbmvStridedBatched hipblasDtbmvStridedBatched_64 hipblasDtbmv_64
        hipblasDtbsv hipblasDtbsvBatched hipblasDtbsvBatched_64 hipblasDtbsvStridedBatched hipblasDtbsvStridedBatched_64
        hipblasDtbsv_64 hipblasDtpmv hipblasDtpmvBatched hipblasDtpmvBatched_64 hipblasDtpmvStridedBatched
        hipblasDtpmvStridedBatched_64 hipblasDtpmv_64 hipblasDtpsv hipblasDtpsvBatched hipblasDtpsvBatched_64
        hipblasDtpsvStridedBatched hipblasDtpsvStridedBatched_64 hipblasDtpsv_64 hipblasDtrmm hipblasDtrmmBatched
        hipblasDtrmmBatched_64 hipblasDtrmmStridedBatched hipblasDtrmmStridedBatched_64 hipblasDtrmm_64 hipblasDtrmv
        hipblasDtrmvBatched hipblasDtrmvBatched_64 hipblasDtrmvStridedBatched hipblasDtrmvStridedBatched_64 hipblasDtrmv_64
        hipblasDtrsm hipblasDtrsmBatched hipblasDtrsmBatched_64 hipblasDtrsmStridedBatched hipblasDtrsmStridedBatched_64
        hipblasDtrsm_64 hipblasDtrsv hipblasDtrsvBatched hipblasDtrsvBatched_64 hipblasDtrsvStridedBatched
        hipblasDtrsvStridedBatched_64 hipblasDtrsv_64 hipblasDtrtri hipblasDtrtriBatched hipblasDtrtriStridedBatched hipblasDzasum
        hipblasDzasumBatched hipblasDzasumBatched_64 hipblasDzasumBatched_v2 hipblasDzasumBatched_v2_64 hipblasDzasumStridedBatched
        hipblasDzasumStridedBatched_64 hipblasDzasumStridedBatched_v2 hipblasDzasumStridedBatched_v2_64 hipblasDzasum_64
        hipblasDzasum_v2 hipblasDzasum_v2_64 hipblasDznrm2 hipblasDznrm2Batched hipblasDznrm2Batched_64 hipblasDznrm2Batched_v2
        hipblasDznrm2Batched_v2_64 hipblasDznrm2StridedBatched hipblasDznrm2StridedBatched_64 hipblasDznrm2StridedBatched_v2
        hipblasDznrm2StridedBatched_v2_64 hipblasDznrm2_64 hipblasDznrm2_v2 hipblasDznrm2_v2_64 hipblasGemmBatchedExWithFlags
        hipblasGemmBatchedExWithFlags_64 hipblasGemmBatchedExWithFlags_v2 hipblasGemmBatchedExWithFlags_v2_64 hipblasGemmBatchedEx_64
        hipblasGemmBatchedEx_v2_64 hipblasGemmExWithFlags hipblasGemmExWithFlags_64 hipblasGemmExWithFlags_v2
        hipblasGemmExWithFlags_v2_64 hipblasGemmEx_64 hipblasGemmEx_v2_64 hipblasGemmStridedBatchedExWithFlags
        hipblasGemmStridedBatchedExWithFlags_64 hipblasGemmStridedBatchedExWithFlags_v2 hipblasGemmStridedBatchedExWithFlags_v2_64
        hipblasGemmStridedBatchedEx_64 hipblasGemmStridedBatchedEx_v2_64 hipblasGetMatrix hipblasGetMatrixAsync hipblasGetVector
        hipblasGetVectorAsync hipblasHaxpy hipblasHaxpyBatched hipblasHaxpyBatched_64 hipblasHaxpyStridedBatched
        hipblasHaxpyStridedBatched_64 hipblasHaxpy_64 hipblasHdot hipblasHdotBatched hipblasHdotBatched_64 hipblasHdotStridedBatched
        hipblasHdotStridedBatched_64 hipblasHdot_64 hipblasHgemmBatched_64 hipblasHgemmStridedBatched_64 hipblasHgemm_64
        hipblasIcamax hipblasIcamaxBatched hipblasIcamaxBatched_64 hipblasIcamaxBatched_v2 hipblasIcamaxBatched_v2_64
        hipblasIcamaxStridedBatched hipblasIcamaxStridedBatched_64 hipblasIcamaxStridedBatched_v2 hipblasIcamaxStridedBatched_v2_64
        hipblasIcamax_64 hipblasIcamax_v2 hipblasIcamax_v2_64 hipblasIcamin hipblasIcaminBatched hipblasIcaminBatched_64
        hipblasIcaminBatched_v2 hipblasIcaminBatched_v2_64 hipblasIcaminStridedBatched hipblasIcaminStridedBatched_64
        hipblasIcaminStridedBatched_v2 hipblasIcaminStridedBatched_v2_64 hipblasIcamin_64 hipblasIcamin_v2 hipblasIcamin_v2_64
        hipblasIdamax hipblasIdamaxBatched hipblasIdamaxBatched_64 hipblasIdamaxStridedBatched hipblasIdamaxStridedBatched_64
        hipblasIdamax_64 hipblasIdamin hipblasIdaminBatched hipblasIdaminBatched_64 hipblasIdaminStridedBatched
        hipblasIdaminStridedBatched_64 hipblasIdamin_64 hipblasIsamax hipblasIsamaxBatched hipblasIsamaxBatched_64
        hipblasIsamaxStridedBatched hipblasIsamaxStridedBatched_64 hipblasIsamax_64 hipblasIsamin hipblasIsaminBatched
        hipblasIsaminBatched_64 hipblasIsaminStridedBatched hipblasIsaminStridedBatched_64 hipblasIsamin_64 hipblasIzamax
        hipblasIzamaxBatched hipblasIzamaxBatched_64 hipblasIzamaxBatched_v2 hipblasIzamaxBatched_v2_64 hipblasIzamaxStridedBatched
        hipblasIzamaxStridedBatched_64 hipblasIzamaxStridedBatched_v2 hipblasIzamaxStridedBatched_v2_64 hipblasIzamax_64
        hipblasIzamax_v2 hipblasIzamax_v2_64 hipblasIzamin hipblasIzaminBatched hipblasIzaminBatched_64 hipblasIzaminBatched_v2
        hipblasIzaminBatched_v2_64 hipblasIzaminStridedBatched hipblasIzaminStridedBatched_64 hipblasIzaminStridedBatched_v2
        hipblasIzaminStridedBatched_v2_64 hipblasIzamin_64 hipblasIzamin_v2 hipblasIzamin_v2_64 hipblasNrm2BatchedEx
        hipblasNrm2BatchedEx_64 hipblasNrm2BatchedEx_v2 hipblasNrm2BatchedEx_v2_64 hipblasNrm2Ex hipblasNrm2Ex_64 hipblasNrm2Ex_v2
        hipblasNrm2Ex_v2_64 hipblasNrm2StridedBatchedEx hipblasNrm2StridedBatchedEx_64 hipblasNrm2StridedBatchedEx_v2
        hipblasNrm2StridedBatchedEx_v2_64 hipblasRotBatchedEx hipblasRotBatchedEx_64 hipblasRotBatchedEx_v2 hipblasRotBatchedEx_v2_64
        hipblasRotEx hipblasRotEx_64 hipblasRotEx_v2 hipblasRotEx_v2_64 hipblasRotStridedBatchedEx hipblasRotStridedBatchedEx_64
        hipblasRotStridedBatchedEx_v2 hipblasRotStridedBatchedEx_v2_64 hipblasSasum hipblasSasumBatched hipblasSasumBatched_64
        hipblasSasumStridedBatched hipblasSasumStridedBatched_64 hipblasSasum_64 hipblasSaxpy hipblasSaxpyBatched
        hipblasSaxpyBatched_64 hipblasSaxpyStridedBatched hipblasSaxpyStridedBatched_64 hipblasSaxpy_64 hipblasScalBatchedEx
        hipblasScalBatchedEx_64 hipblasScalBatchedEx_v2 hipblasScalBatchedEx_v2_64 hipblasScalEx hipblasScalEx_64 hipblasScalEx_v2
        hipblasScalEx_v2_64 hipblasScalStridedBatchedEx hipblasScalStridedBatchedEx_64 hipblasScalStridedBatchedEx_v2
        hipblasScalStridedBatchedEx_v2_64 hipblasScasum hipblasScasumBatched hipblasScasumBatched_64 hipblasScasumBatched_v2
        hipblasScasumBatched_v2_64 hipblasScasumStridedBatched hipblasScasumStridedBatched_64 hipblasScasumStridedBatched_v2
        hipblasScasumStridedBatched_v2_64 hipblasScasum_64 hipblasScasum_v2 hipblasScasum_v2_64 hipblasScnrm2 hipblasScnrm2Batched
        hipblasScnrm2Batched_64 hipblasScnrm2Batched_v2 hipblasScnrm2Batched_v2_64 hipblasScnrm2StridedBatched
        hipblasScnrm2StridedBatched_64 hipblasScnrm2StridedBatched_v2 hipblasScnrm2StridedBatched_v2_64 hipblasScnrm2_64
        hipblasScnrm2_v2 hipblasScnrm2_v2_64 hipblasScopy hipblasScopyBatched hipblasScopyBatched_64 hipblasScopyStridedBatched
        hipblasScopyStridedBatched_64 hipblasScopy_64 hipblasSdgmm hipblasSdgmmBatched hipblasSdgmmBatched_64
        hipblasSdgmmStridedBatched hipblasSdgmmStridedBatched_64 hipblasSdgmm_64 hipblasSdot hipblasSdotBatched hipblasSdotBatched_64
        hipblasSdotStridedBatched hipblasSdotStridedBatched_64 hipblasSdot_64 hipblasSetMatrix hipblasSetMatrixAsync hipblasSetVector
        hipblasSetVectorAsync hipblasSgbmv hipblasSgbmvBatched hipblasSgbmvBatched_64 hipblasSgbmvStridedBatched
        hipblasSgbmvStridedBatched_64 hipblasSgbmv_64 hipblasSgeam hipblasSgeamBatched hipblasSgeamBatched_64
        hipblasSgeamStridedBatched hipblasSgeamStridedBatched_64 hipblasSgeam_64 hipblasSgels hipblasSgelsBatched
        hipblasSgelsStridedBatched hipblasSgemmBatched_64 hipblasSgemmStridedBatched_64 hipblasSgemm_64 hipblasSgemv
        hipblasSgemvBatched hipblasSgemvBatched_64 hipblasSgemvStridedBatched hipblasSgemvStridedBatched_64 hipblasSgemv_64
        hipblasSgeqrf hipblasSgeqrfBatched hipblasSgeqrfStridedBatched hipblasSger hipblasSgerBatched hipblasSgerBatched_64
        hipblasSgerStridedBatched hipblasSgerStridedBatched_64 hipblasSger_64 hipblasSgetrf hipblasSgetrfBatched
        hipblasSgetrfStridedBatched hipblasSgetriBatched hipblasSgetrs hipblasSgetrsBatched hipblasSgetrsStridedBatched hipblasSnrm2
        hipblasSnrm2Batched hipblasSnrm2Batched_64 hipblasSnrm2StridedBatched hipblasSnrm2StridedBatched_64 hipblasSnrm2_64
        hipblasSrot hipblasSrotBatched hipblasSrotBatched_64 hipblasSrotStridedBatched hipblasSrotStridedBatched_64 hipblasSrot_64
        hipblasSrotg hipblasSrotgBatched hipblasSrotgBatched_64 hipblasSrotgStridedBatched hipblasSrotgStridedBatched_64
        hipblasSrotg_64 hipblasSrotm hipblasSrotmBatched hipblasSrotmBatched_64 hipblasSrotmStridedBatched
        hipblasSrotmStridedBatched_64 hipblasSrotm_64 hipblasSrotmg hipblasSrotmgBatched hipblasSrotmgBatched_64
        hipblasSrotmgStridedBatched hipblasSrotmgStridedBatched_64 hipblasSrotmg_64 hipblasSsbmv hipblasSsbmvBatched
        hipblasSsbmvBatched_64 hipblasSsbmvStridedBatched hipblasSsbmvStridedBatched_64 hipblasSsbmv_64 hipblasSscal
        hipblasSscalBatched hipblasSscalBatched_64 hipblasSscalStridedBatched hipblasSscalStridedBatched_64 hipblasSscal_64
        hipblasSspmv hipblasSspmvBatched hipblasSspmvBatched_64 hipblasSspmvStridedBatched hipblasSspmvStridedBatched_64
        hipblasSspmv_64 hipblasSspr hipblasSspr2 hipblasSspr2Batched hipblasSspr2Batched_64 hipblasSspr2StridedBatched
        hipblasSspr2StridedBatched_64 hipblasSspr2_64 hipblasSsprBatched hipblasSsprBatched_64 hipblasSsprStridedBatched
        hipblasSsprStridedBatched_64 hipblasSspr_64 hipblasSswap hipblasSswapBatched hipblasSswapBatched_64
        hipblasSswapStridedBatched hipblasSswapStridedBatched_64 hipblasSswap_64 hipblasSsymm hipblasSsymmBatched
        hipblasSsymmBatched_64 hipblasSsymmStridedBatched hipblasSsymmStridedBatched_64 hipblasSsymm_64 hipblasSsymv
        hipblasSsymvBatched hipblasSsymvBatched_64 hipblasSsymvStridedBatched hipblasSsymvStridedBatched_64 hipblasSsymv_64
        hipblasSsyr hipblasSsyr2 hipblasSsyr2Batched hipblasSsyr2Batched_64 hipblasSsyr2StridedBatched hipblasSsyr2StridedBatched_64
        hipblasSsyr2_64 hipblasSsyr2k hipblasSsyr2kBatched hipblasSsyr2kBatched_64 hipblasSsyr2kStridedBatched
        hipblasSsyr2kStridedBatched_64 hipblasSsyr2k_64 hipblasSsyrBatched hipblasSsyrBatched_64 hipblasSsyrStridedBatched
        hipblasSsyrStridedBatched_64 hipblasSsyr_64 hipblasSsyrk hipblasSsyrkBatched hipblasSsyrkBatched_64
        hipblasSsyrkStridedBatched hipblasSsyrkStridedBatched_64 hipblasSsyrk_64 hipblasSsyrkx hipblasSsyrkxBatched
        hipblasSsyrkxBatched_64 hipblasSsyrkxStridedBatched hipblasSsyrkxStridedBatched_64 hipblasSsyrkx_64 hipblasStbmv
        hipblasStbmvBatched hipblasStbmvBatched_64 hipblasStbmvStridedBatched hipblasStbmvStridedBatched_64 hipblasStbmv_64
        hipblasStbsv hipblasStbsvBatched hipblasStbsvBatched_64 hipblasStbsvStridedBatched hipblasStbsvStridedBatched_64
        hipblasStbsv_64 hipblasStpmv hipblasStpmvBatched hipblasStpmvBatched_64 hipblasStpmvStridedBatched
        hipblasStpmvStridedBatched_64 hipblasStpmv_64 hipblasStpsv hipblasStpsvBatched hipblasStpsvBatched_64
        hipblasStpsvStridedBatched hipblasStpsvStridedBatched_64 hipblasStpsv_64 hipblasStrmm hipblasStrmmBatched
        hipblasStrmmBatched_64 hipblasStrmmStridedBatched hipblasStrmmStridedBatched_64 hipblasStrmm_64 hipblasStrmv
        hipblasStrmvBatched hipblasStrmvBatched_64 hipblasStrmvStridedBatched hipblasStrmvStridedBatched_64 hipblasStrmv_64
        hipblasStrsm hipblasStrsmBatched_64 hipblasStrsmStridedBatched hipblasStrsmStridedBatched_64 hipblasStrsm_64 hipblasStrsv
        hipblasStrsvBatched hipblasStrsvBatched_64 hipblasStrsvStridedBatched hipblasStrsvStridedBatched_64 hipblasStrsv_64
        hipblasStrtri hipblasStrtriBatched hipblasStrtriStridedBatched hipblasTrsmBatchedEx hipblasTrsmBatchedEx_v2 hipblasTrsmEx
        hipblasTrsmEx_v2 hipblasTrsmStridedBatchedEx hipblasTrsmStridedBatchedEx_v2 hipblasZaxpy hipblasZaxpyBatched
        hipblasZaxpyBatched_64 hipblasZaxpyBatched_v2 hipblasZaxpyBatched_v2_64 hipblasZaxpyStridedBatched
        hipblasZaxpyStridedBatched_64 hipblasZaxpyStridedBatched_v2 hipblasZaxpyStridedBatched_v2_64 hipblasZaxpy_64 hipblasZaxpy_v2
        hipblasZaxpy_v2_64 hipblasZcopy hipblasZcopyBatched hipblasZcopyBatched_64 hipblasZcopyBatched_v2 hipblasZcopyBatched_v2_64
        hipblasZcopyStridedBatched hipblasZcopyStridedBatched_64 hipblasZcopyStridedBatched_v2 hipblasZcopyStridedBatched_v2_64
        hipblasZcopy_64 hipblasZcopy_v2 hipblasZcopy_v2_64 hipblasZdgmm hipblasZdgmmBatched hipblasZdgmmBatched_64
        hipblasZdgmmBatched_v2 hipblasZdgmmBatched_v2_64 hipblasZdgmmStridedBatched hipblasZdgmmStridedBatched_64
        hipblasZdgmmStridedBatched_v2 hipblasZdgmmStridedBatched_v2_64 hipblasZdgmm_64 hipblasZdgmm_v2 hipblasZdgmm_v2_64
        hipblasZdotc hipblasZdotcBatched hipblasZdotcBatched_64 hipblasZdotcBatched_v2 hipblasZdotcBatched_v2_64
        hipblasZdotcStridedBatched hipblasZdotcStridedBatched_64 hipblasZdotcStridedBatched_v2 hipblasZdotcStridedBatched_v2_64
        hipblasZdotc_64 hipblasZdotc_v2 hipblasZdotc_v2_64 hipblasZdotu hipblasZdotuBatched hipblasZdotuBatched_64
        hipblasZdotuBatched_v2 hipblasZdotuBatched_v2_64 hipblasZdotuStridedBatched hipblasZdotuStridedBatched_64
        hipblasZdotuStridedBatched_v2 hipblasZdotuStridedBatched_v2_64 hipblasZdotu_64 hipblasZdotu_v2 hipblasZdotu_v2_64
        hipblasZdrot hipblasZdrotBatched hipblasZdrotBatched_64 hipblasZdrotBatched_v2 hipblasZdrotBatched_v2_64
        hipblasZdrotStridedBatched hipblasZdrotStridedBatched_64 hipblasZdrotStridedBatched_v2 hipblasZdrotStridedBatched_v2_64
        hipblasZdrot_64 hipblasZdrot_v2 hipblasZdrot_v2_64 hipblasZdscal hipblasZdscalBatched hipblasZdscalBatched_64
        hipblasZdscalBatched_v2 hipblasZdscalBatched_v2_64 hipblasZdscalStridedBatched hipblasZdscalStridedBatched_64
        hipblasZdscalStridedBatched_v2 hipblasZdscalStridedBatched_v2_64 hipblasZdscal_64 hipblasZdscal_v2 hipblasZdscal_v2_64
        hipblasZgbmv hipblasZgbmvBatched hipblasZgbmvBatched_64 hipblasZgbmvBatched_v2 hipblasZgbmvBatched_v2_64
        hipblasZgbmvStridedBatched hipblasZgbmvStridedBatched_64 hipblasZgbmvStridedBatched_v2 hipblasZgbmvStridedBatched_v2_64
        hipblasZgbmv_64 hipblasZgbmv_v2 hipblasZgbmv_v2_64 hipblasZgeam hipblasZgeamBatched hipblasZgeamBatched_64
        hipblasZgeamBatched_v2 hipblasZgeamBatched_v2_64 hipblasZgeamStridedBatched hipblasZgeamStridedBatched_64
        hipblasZgeamStridedBatched_v2 hipblasZgeamStridedBatched_v2_64 hipblasZgeam_64 hipblasZgeam_v2 hipblasZgeam_v2_64
        hipblasZgels hipblasZgelsBatched hipblasZgelsBatched_v2 hipblasZgelsStridedBatched hipblasZgelsStridedBatched_v2
        hipblasZgels_v2 hipblasZgemm hipblasZgemmBatched hipblasZgemmBatched_64 hipblasZgemmBatched_v2 hipblasZgemmBatched_v2_64
        hipblasZgemmStridedBatched hipblasZgemmStridedBatched_64 hipblasZgemmStridedBatched_v2 hipblasZgemmStridedBatched_v2_64
        hipblasZgemm_64 hipblasZgemm_v2 hipblasZgemm_v2_64 hipblasZgemv hipblasZgemvBatched hipblasZgemvBatched_64
        hipblasZgemvBatched_v2 hipblasZgemvBatched_v2_64 hipblasZgemvStridedBatched hipblasZgemvStridedBatched_64
        hipblasZgemvStridedBatched_v2 hipblasZgemvStridedBatched_v2_64 hipblasZgemv_64 hipblasZgemv_v2 hipblasZgemv_v2_64
        hipblasZgeqrf hipblasZgeqrfBatched hipblasZgeqrfBatched_v2 hipblasZgeqrfStridedBatched hipblasZgeqrfStridedBatched_v2
        hipblasZgeqrf_v2 hipblasZgerc hipblasZgercBatched hipblasZgercBatched_64 hipblasZgercBatched_v2 hipblasZgercBatched_v2_64
        hipblasZgercStridedBatched hipblasZgercStridedBatched_64 hipblasZgercStridedBatched_v2 hipblasZgercStridedBatched_v2_64
        hipblasZgerc_64 hipblasZgerc_v2 hipblasZgerc_v2_64 hipblasZgeru hipblasZgeruBatched hipblasZgeruBatched_64
        hipblasZgeruBatched_v2 hipblasZgeruBatched_v2_64 hipblasZgeruStridedBatched hipblasZgeruStridedBatched_64
        hipblasZgeruStridedBatched_v2 hipblasZgeruStridedBatched_v2_64 hipblasZgeru_64 hipblasZgeru_v2 hipblasZgeru_v2_64
        hipblasZgetrf hipblasZgetrfBatched hipblasZgetrfBatched_v2 hipblasZgetrfStridedBatched hipblasZgetrfStridedBatched_v2
        hipblasZgetrf_v2 hipblasZgetriBatched hipblasZgetriBatched_v2 hipblasZgetrs hipblasZgetrsBatched hipblasZgetrsBatched_v2
        hipblasZgetrsStridedBatched hipblasZgetrsStridedBatched_v2 hipblasZgetrs_v2 hipblasZhbmv hipblasZhbmvBatched
        hipblasZhbmvBatched_64 hipblasZhbmvBatched_v2 hipblasZhbmvBatched_v2_64 hipblasZhbmvStridedBatched
        hipblasZhbmvStridedBatched_64 hipblasZhbmvStridedBatched_v2 hipblasZhbmvStridedBatched_v2_64 hipblasZhbmv_64 hipblasZhbmv_v2
        hipblasZhbmv_v2_64 hipblasZhemm hipblasZhemmBatched hipblasZhemmBatched_64 hipblasZhemmBatched_v2 hipblasZhemmBatched_v2_64
        hipblasZhemmStridedBatched hipblasZhemmStridedBatched_64 hipblasZhemmStridedBatched_v2 hipblasZhemmStridedBatched_v2_64
        hipblasZhemm_64 hipblasZhemm_v2 hipblasZhemm_v2_64 hipblasZhemv hipblasZhemvBatched hipblasZhemvBatched_64
        hipblasZhemvBatched_v2 hipblasZhemvBatched_v2_64 hipblasZhemvStridedBatched hipblasZhemvStridedBatched_64
        hipblasZhemvStridedBatched_v2 hipblasZhemvStridedBatched_v2_64 hipblasZhemv_64 hipblasZhemv_v2 hipblasZhemv_v2_64 hipblasZher
        hipblasZher2 hipblasZher2Batched hipblasZher2Batched_64 hipblasZher2Batched_v2 hipblasZher2Batched_v2_64
        hipblasZher2StridedBatched hipblasZher2StridedBatched_64 hipblasZher2StridedBatched_v2 hipblasZher2StridedBatched_v2_64
        hipblasZher2_64 hipblasZher2_v2 hipblasZher2_v2_64 hipblasZher2k hipblasZher2kBatched hipblasZher2kBatched_64
        hipblasZher2kBatched_v2 hipblasZher2kBatched_v2_64 hipblasZher2kStridedBatched hipblasZher2kStridedBatched_64
        hipblasZher2kStridedBatched_v2 hipblasZher2kStridedBatched_v2_64 hipblasZher2k_64 hipblasZher2k_v2 hipblasZher2k_v2_64
        hipblasZherBatched hipblasZherBatched_64 hipblasZherBatched_v2 hipblasZherBatched_v2_64 hipblasZherStridedBatched
        hipblasZherStridedBatched_64 hipblasZherStridedBatched_v2 hipblasZherStridedBatched_v2_64 hipblasZher_64 hipblasZher_v2
        hipblasZher_v2_64 hipblasZherk hipblasZherkBatched hipblasZherkBatched_64 hipblasZherkBatched_v2 hipblasZherkBatched_v2_64
        hipblasZherkStridedBatched hipblasZherkStridedBatched_64 hipblasZherkStridedBatched_v2 hipblasZherkStridedBatched_v2_64
        hipblasZherk_64 hipblasZherk_v2 hipblasZherk_v2_64 hipblasZherkx hipblasZherkxBatched hipblasZherkxBatched_64
        hipblasZherkxBatched_v2 hipblasZherkxBatched_v2_64 hipblasZherkxStridedBatched hipblasZherkxStridedBatched_64
        hipblasZherkxStridedBatched_v2 hipblasZherkxStridedBatched_v2_64 hipblasZherkx_64 hipblasZherkx_v2 hipblasZherkx_v2_64
        hipblasZhpmv hipblasZhpmvBatched hipblasZhpmvBatched_64 hipblasZhpmvBatched_v2 hipblasZhpmvBatched_v2_64
        hipblasZhpmvStridedBatched hipblasZhpmvStridedBatched_64 hipblasZhpmvStridedBatched_v2 hipblasZhpmvStridedBatched_v2_64
        hipblasZhpmv_64 hipblasZhpmv_v2 hipblasZhpmv_v2_64 hipblasZhpr hipblasZhpr2 hipblasZhpr2Batched hipblasZhpr2Batched_64
        hipblasZhpr2Batched_v2 hipblasZhpr2Batched_v2_64 hipblasZhpr2StridedBatched hipblasZhpr2StridedBatched_64
        hipblasZhpr2StridedBatched_v2 hipblasZhpr2StridedBatched_v2_64 hipblasZhpr2_64 hipblasZhpr2_v2 hipblasZhpr2_v2_64
        hipblasZhprBatched hipblasZhprBatched_64 hipblasZhprBatched_v2 hipblasZhprBatched_v2_64 hipblasZhprStridedBatched
        hipblasZhprStridedBatched_64 hipblasZhprStridedBatched_v2 hipblasZhprStridedBatched_v2_64 hipblasZhpr_64 hipblasZhpr_v2
        hipblasZhpr_v2_64 hipblasZrot hipblasZrotBatched hipblasZrotBatched_64 hipblasZrotBatched_v2 hipblasZrotBatched_v2_64
        hipblasZrotStridedBatched hipblasZrotStridedBatched_64 hipblasZrotStridedBatched_v2 hipblasZrotStridedBatched_v2_64
        hipblasZrot_64 hipblasZrot_v2 hipblasZrot_v2_64 hipblasZrotg hipblasZrotgBatched hipblasZrotgBatched_64
        hipblasZrotgBatched_v2 hipblasZrotgBatched_v2_64 hipblasZrotgStridedBatched hipblasZrotgStridedBatched_64
        hipblasZrotgStridedBatched_v2 hipblasZrotgStridedBatched_v2_64 hipblasZrotg_64 hipblasZrotg_v2 hipblasZrotg_v2_64
        hipblasZscal hipblasZscalBatched hipblasZscalBatched_64 hipblasZscalBatched_v2 hipblasZscalBatched_v2_64
        hipblasZscalStridedBatched hipblasZscalStridedBatched_64 hipblasZscalStridedBatched_v2 hipblasZscalStridedBatched_v2_64
        hipblasZscal_64 hipblasZscal_v2 hipblasZscal_v2_64 hipblasZspr hipblasZsprBatched hipblasZsprBatched_64 hipblasZsprBatched_v2
        hipblasZsprBatched_v2_64 hipblasZsprStridedBatched hipblasZsprStridedBatched_64 hipblasZsprStridedBatched_v2
        hipblasZsprStridedBatched_v2_64 hipblasZspr_64 hipblasZspr_v2 hipblasZspr_v2_64 hipblasZswap hipblasZswapBatched
        hipblasZswapBatched_64 hipblasZswapBatched_v2 hipblasZswapBatched_v2_64 hipblasZswapStridedBatched
        hipblasZswapStridedBatched_64 hipblasZswapStridedBatched_v2 hipblasZswapStridedBatched_v2_64 hipblasZswap_64 hipblasZswap_v2
        hipblasZswap_v2_64 hipblasZsymm hipblasZsymmBatched hipblasZsymmBatched_64 hipblasZsymmBatched_v2 hipblasZsymmBatched_v2_64
        hipblasZsymmStridedBatched hipblasZsymmStridedBatched_64 hipblasZsymmStridedBatched_v2 hipblasZsymmStridedBatched_v2_64
        hipblasZsymm_64 hipblasZsymm_v2 hipblasZsymm_v2_64 hipblasZsymv hipblasZsymvBatched hipblasZsymvBatched_64
        hipblasZsymvBatched_v2 hipblasZsymvBatched_v2_64 hipblasZsymvStridedBatched hipblasZsymvStridedBatched_64
        hipblasZsymvStridedBatched_v2 hipblasZsymvStridedBatched_v2_64 hipblasZsymv_64 hipblasZsymv_v2 hipblasZsymv_v2_64 hipblasZsyr
        hipblasZsyr2 hipblasZsyr2Batched hipblasZsyr2Batched_64 hipblasZsyr2Batched_v2 hipblasZsyr2Batched_v2_64
        hipblasZsyr2StridedBatched hipblasZsyr2StridedBatched_64 hipblasZsyr2StridedBatched_v2 hipblasZsyr2StridedBatched_v2_64
        hipblasZsyr2_64 hipblasZsyr2_v2 hipblasZsyr2_v2_64 hipblasZsyr2k hipblasZsyr2kBatched hipblasZsyr2kBatched_64
        hipblasZsyr2kBatched_v2 hipblasZsyr2kBatched_v2_64 hipblasZsyr2kStridedBatched hipblasZsyr2kStridedBatched_64
        hipblasZsyr2kStridedBatched_v2 hipblasZsyr2kStridedBatched_v2_64 hipblasZsyr2k_64 hipblasZsyr2k_v2 hipblasZsyr2k_v2_64
        hipblasZsyrBatched hipblasZsyrBatched_64 hipblasZsyrBatched_v2 hipblasZsyrBatched_v2_64 hipblasZsyrStridedBatched
        hipblasZsyrStridedBatched_64 hipblasZsyrStridedBatched_v2 hipblasZsyrStridedBatched_v2_64 hipblasZsyr_64 hipblasZsyr_v2
        hipblasZsyr_v2_64 hipblasZsyrk hipblasZsyrkBatched hipblasZsyrkBatched_64 hipblasZsyrkBatched_v2 hipblasZsyrkBatched_v2_64
        hipblasZsyrkStridedBatched hipblasZsyrkStridedBatched_64 hipblasZsyrkStridedBatched_v2 hipblasZsyrkStridedBatched_v2_64
        hipblasZsyrk_64 hipblasZsyrk_v2 hipblasZsyrk_v2_64 hipblasZsyrkx hipblasZsyrkxBatched hipblasZsyrkxBatched_64
        hipblasZsyrkxBatched_v2 hipblasZsyrkxBatched_v2_64 hipblasZsyrkxStridedBatched hipblasZsyrkxStridedBatched_64
        hipblasZsyrkxStridedBatched_v2 hipblasZsyrkxStridedBatched_v2_64 hipblasZsyrkx_64 hipblasZsyrkx_v2 hipblasZsyrkx_v2_64
        hipblasZtbmv hipblasZtbmvBatched hipblasZtbmvBatched_64 hipblasZtbmvBatched_v2 hipblasZtbmvBatched_v2_64
        hipblasZtbmvStridedBatched hipblasZtbmvStridedBatched_64 hipblasZtbmvStridedBatched_v2 hipblasZtbmvStridedBatched_v2_64
        hipblasZtbmv_64 hipblasZtbmv_v2 hipblasZtbmv_v2_64 hipblasZtbsv hipblasZtbsvBatched hipblasZtbsvBatched_64
        hipblasZtbsvBatched_v2 hipblasZtbsvBatched_v2_64 hipblasZtbsvStridedBatched hipblasZtbsvStridedBatched_64
        hipblasZtbsvStridedBatched_v2 hipblasZtbsvStridedBatched_v2_64 hipblasZtbsv_64 hipblasZtbsv_v2 hipblasZtbsv_v2_64
        hipblasZtpmv hipblasZtpmvBatched hipblasZtpmvBatched_64 hipblasZtpmvBatched_v2 hipblasZtpmvBatched_v2_64
        hipblasZtpmvStridedBatched hipblasZtpmvStridedBatched_64 hipblasZtpmvStridedBatched_v2 hipblasZtpmvStridedBatched_v2_64
        hipblasZtpmv_64 hipblasZtpmv_v2 hipblasZtpmv_v2_64 hipblasZtpsv hipblasZtpsvBatched hipblasZtpsvBatched_64
        hipblasZtpsvBatched_v2 hipblasZtpsvBatched_v2_64 hipblasZtpsvStridedBatched hipblasZtpsvStridedBatched_64
        hipblasZtpsvStridedBatched_v2 hipblasZtpsvStridedBatched_v2_64 hipblasZtpsv_64 hipblasZtpsv_v2 hipblasZtpsv_v2_64
        hipblasZtrmm hipblasZtrmmBatched hipblasZtrmmBatched_64 hipblasZtrmmBatched_v2 hipblasZtrmmBatched_v2_64
        hipblasZtrmmStridedBatched hipblasZtrmmStridedBatched_64 hipblasZtrmmStridedBatched_v2 hipblasZtrmmStridedBatched_v2_64
        hipblasZtrmm_64 hipblasZtrmm_v2 hipblasZtrmm_v2_64 hipblasZtrmv hipblasZtrmvBatched hipblasZtrmvBatched_64
        hipblasZtrmvBatched_v2 hipblasZtrmvBatched_v2_64 hipblasZtrmvStridedBatched hipblasZtrmvStridedBatched_64
        hipblasZtrmvStridedBatched_v2 hipblasZtrmvStridedBatched_v2_64 hipblasZtrmv_64 hipblasZtrmv_v2 hipblasZtrmv_v2_64
        hipblasZtrsm hipblasZtrsmBatched hipblasZtrsmBatched_64 hipblasZtrsmBatched_v2 hipblasZtrsmBatched_v2_64
        hipblasZtrsmStridedBatched hipblasZtrsmStridedBatched_64 hipblasZtrsmStridedBatched_v2 hipblasZtrsmStridedBatched_v2_64
        hipblasZtrsm_64 hipblasZtrsm_v2 hipblasZtrsm_v2_64 hipblasZtrsv hipblasZtrsvBatched hipblasZtrsvBatched_64
        hipblasZtrsvBatched_v2 hipblasZtrsvBatched_v2_64 hipblasZtrsvStridedBatched hipblasZtrsvStridedBatched_64
        hipblasZtrsvStridedBatched_v2 hipblasZtrsvStridedBatched_v2_64 hipblasZtrsv_64 hipblasZtrsv_v2 hipblasZtrsv_v2_64
        hipblasZtrtri hipblasZtrtriBatched hipblasZtrtriBatched_v2 hipblasZtrtriStridedBatched hipblasZtrtriStridedBatched_v2
        hipblasZtrtri_v2
    }
}
