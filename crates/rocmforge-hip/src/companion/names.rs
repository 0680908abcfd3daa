//! Names of the companion libraries: what the wheels of CuPy 14.2, JAX 0.10 and bitsandbytes 0.50 ask them for.

super::libraries! {
    implemented {
        rccl { ncclGetErrorString: error_text }
        roctracer64 { roctracer_start: accepted roctracer_stop: accepted }
        roctx64 { roctxMarkA: accepted roctxRangePushA: accepted roctxRangePop: accepted }
    }
    hipblaslt answers 7 {
        hipblasLtCreate hipblasLtDestroy hipblasLtGetVersion hipblasLtGetGitRevision hipblasLtGetArchName
        hipblasLtMatrixLayoutCreate hipblasLtMatrixLayoutDestroy hipblasLtMatrixLayoutSetAttribute hipblasLtMatrixLayoutGetAttribute
        hipblasLtMatmulDescCreate hipblasLtMatmulDescDestroy hipblasLtMatmulDescSetAttribute hipblasLtMatmulDescGetAttribute
        hipblasLtMatmulPreferenceCreate hipblasLtMatmulPreferenceDestroy hipblasLtMatmulPreferenceSetAttribute
        hipblasLtMatmulPreferenceGetAttribute hipblasLtMatmulAlgoGetHeuristic hipblasLtMatmul hipblasLtMatrixTransformDescCreate
        hipblasLtMatrixTransformDescDestroy hipblasLtMatrixTransformDescSetAttribute hipblasLtMatrixTransformDescGetAttribute
        hipblasLtMatrixTransform
    }
    hipsolver answers 7 {
        hipsolverCgeqrf hipsolverCgeqrf_bufferSize hipsolverCgesvd hipsolverCgesvd_bufferSize hipsolverCgesvdj
        hipsolverCgesvdjBatched hipsolverCgesvdjBatched_bufferSize hipsolverCgesvdj_bufferSize hipsolverCgetrf
        hipsolverCgetrf_bufferSize hipsolverCheevd hipsolverCheevd_bufferSize hipsolverCheevj hipsolverCheevjBatched
        hipsolverCheevjBatched_bufferSize hipsolverCheevj_bufferSize hipsolverCpotrf hipsolverCpotrf_bufferSize hipsolverCreate
        hipsolverCreateGesvdjInfo hipsolverCreateSyevjInfo hipsolverCungqr hipsolverCungqr_bufferSize hipsolverCunmqr
        hipsolverCunmqr_bufferSize hipsolverDestroyGesvdjInfo hipsolverDestroySyevjInfo hipsolverDgeqrf hipsolverDgeqrf_bufferSize
        hipsolverDgesvd hipsolverDgesvd_bufferSize hipsolverDgesvdj hipsolverDgesvdjBatched hipsolverDgesvdjBatched_bufferSize
        hipsolverDgesvdj_bufferSize hipsolverDgetrf hipsolverDgetrf_bufferSize hipsolverDnChetrd hipsolverDnChetrd_bufferSize
        hipsolverDnCpotrfBatched hipsolverDnDpotrfBatched hipsolverDnDsytrd hipsolverDnDsytrd_bufferSize hipsolverDnSpotrfBatched
        hipsolverDnSsytrd hipsolverDnSsytrd_bufferSize hipsolverDnZhetrd hipsolverDnZhetrd_bufferSize hipsolverDnZpotrfBatched
        hipsolverDorgqr hipsolverDorgqr_bufferSize hipsolverDormqr hipsolverDormqr_bufferSize hipsolverDpotrf
        hipsolverDpotrf_bufferSize hipsolverDsyevd hipsolverDsyevd_bufferSize hipsolverDsyevj hipsolverDsyevjBatched
        hipsolverDsyevjBatched_bufferSize hipsolverDsyevj_bufferSize hipsolverSetStream hipsolverSgeqrf hipsolverSgeqrf_bufferSize
        hipsolverSgesvd hipsolverSgesvd_bufferSize hipsolverSgesvdj hipsolverSgesvdjBatched hipsolverSgesvdjBatched_bufferSize
        hipsolverSgesvdj_bufferSize hipsolverSgetrf hipsolverSgetrf_bufferSize hipsolverSorgqr hipsolverSorgqr_bufferSize
        hipsolverSormqr hipsolverSormqr_bufferSize hipsolverSpotrf hipsolverSpotrf_bufferSize hipsolverSsyevd
        hipsolverSsyevd_bufferSize hipsolverSsyevj hipsolverSsyevjBatched hipsolverSsyevjBatched_bufferSize
        hipsolverSsyevj_bufferSize hipsolverZgeqrf hipsolverZgeqrf_bufferSize hipsolverZgesvd hipsolverZgesvd_bufferSize
        hipsolverZgesvdj hipsolverZgesvdjBatched hipsolverZgesvdjBatched_bufferSize hipsolverZgesvdj_bufferSize hipsolverZgetrf
        hipsolverZgetrf_bufferSize hipsolverZheevd hipsolverZheevd_bufferSize hipsolverZheevj hipsolverZheevjBatched
        hipsolverZheevjBatched_bufferSize hipsolverZheevj_bufferSize hipsolverZpotrf hipsolverZpotrf_bufferSize hipsolverZungqr
        hipsolverZungqr_bufferSize hipsolverZunmqr hipsolverZunmqr_bufferSize
    }
    hipsparse answers 10 {
        hipsparseCbsric02 hipsparseCbsric02_analysis hipsparseCbsric02_bufferSize hipsparseCbsrilu02 hipsparseCbsrilu02_analysis
        hipsparseCbsrilu02_bufferSize hipsparseCbsrilu02_numericBoost hipsparseCcsc2dense hipsparseCcsr2csc
        hipsparseCcsr2csr_compress hipsparseCcsr2dense hipsparseCcsrgeam hipsparseCcsrgeam2 hipsparseCcsrgeam2_bufferSizeExt
        hipsparseCcsrgemm hipsparseCcsrgemm2 hipsparseCcsrgemm2_bufferSizeExt hipsparseCcsric02 hipsparseCcsric02_analysis
        hipsparseCcsric02_bufferSize hipsparseCcsrilu02 hipsparseCcsrilu02_analysis hipsparseCcsrilu02_bufferSize
        hipsparseCcsrilu02_numericBoost hipsparseCcsrmm hipsparseCcsrmm2 hipsparseCcsrmv hipsparseCcsrsm2_analysis
        hipsparseCcsrsm2_bufferSizeExt hipsparseCcsrsm2_solve hipsparseCcsrsv2_analysis hipsparseCcsrsv2_bufferSize
        hipsparseCcsrsv2_solve hipsparseCdense2csc hipsparseCdense2csr hipsparseCgthr hipsparseCgtsv2 hipsparseCgtsv2StridedBatch
        hipsparseCgtsv2StridedBatch_bufferSizeExt hipsparseCgtsv2_bufferSizeExt hipsparseCnnz hipsparseCnnz_compress
        hipsparseCooAoSGet hipsparseCooGet hipsparseCooSetStridedBatch hipsparseCreate hipsparseCreateBsric02Info
        hipsparseCreateBsrilu02Info hipsparseCreateCoo hipsparseCreateCooAoS hipsparseCreateCsc hipsparseCreateCsr
        hipsparseCreateCsrgemm2Info hipsparseCreateCsric02Info hipsparseCreateCsrilu02Info hipsparseCreateCsrsm2Info
        hipsparseCreateCsrsv2Info hipsparseCreateDnMat hipsparseCreateDnVec hipsparseCreateIdentityPermutation
        hipsparseCreateMatDescr hipsparseCreateSpVec hipsparseCsrGet hipsparseCsrSetPointers hipsparseDbsric02
        hipsparseDbsric02_analysis hipsparseDbsric02_bufferSize hipsparseDbsrilu02 hipsparseDbsrilu02_analysis
        hipsparseDbsrilu02_bufferSize hipsparseDbsrilu02_numericBoost hipsparseDcsc2dense hipsparseDcsr2csc
        hipsparseDcsr2csr_compress hipsparseDcsr2dense hipsparseDcsrgeam hipsparseDcsrgeam2 hipsparseDcsrgeam2_bufferSizeExt
        hipsparseDcsrgemm hipsparseDcsrgemm2 hipsparseDcsrgemm2_bufferSizeExt hipsparseDcsric02 hipsparseDcsric02_analysis
        hipsparseDcsric02_bufferSize hipsparseDcsrilu02 hipsparseDcsrilu02_analysis hipsparseDcsrilu02_bufferSize
        hipsparseDcsrilu02_numericBoost hipsparseDcsrmm hipsparseDcsrmm2 hipsparseDcsrmv hipsparseDcsrsm2_analysis
        hipsparseDcsrsm2_bufferSizeExt hipsparseDcsrsm2_solve hipsparseDcsrsv2_analysis hipsparseDcsrsv2_bufferSize
        hipsparseDcsrsv2_solve hipsparseDdense2csc hipsparseDdense2csr hipsparseDenseToSparse_analysis
        hipsparseDenseToSparse_bufferSize hipsparseDenseToSparse_convert hipsparseDestroy hipsparseDestroyBsric02Info
        hipsparseDestroyBsrilu02Info hipsparseDestroyCsrgemm2Info hipsparseDestroyCsric02Info hipsparseDestroyCsrilu02Info
        hipsparseDestroyCsrsm2Info hipsparseDestroyCsrsv2Info hipsparseDestroyDnMat hipsparseDestroyDnVec hipsparseDestroyMatDescr
        hipsparseDestroySpMat hipsparseDestroySpVec hipsparseDgthr hipsparseDgtsv2 hipsparseDgtsv2StridedBatch
        hipsparseDgtsv2StridedBatch_bufferSizeExt hipsparseDgtsv2_bufferSizeExt hipsparseDnMatGet hipsparseDnMatGetValues
        hipsparseDnMatSetStridedBatch hipsparseDnMatSetValues hipsparseDnVecGet hipsparseDnVecGetValues hipsparseDnVecSetValues
        hipsparseDnnz hipsparseDnnz_compress hipsparseGetStream hipsparseGetVersion hipsparseSbsric02 hipsparseSbsric02_analysis
        hipsparseSbsric02_bufferSize hipsparseSbsrilu02 hipsparseSbsrilu02_analysis hipsparseSbsrilu02_bufferSize
        hipsparseSbsrilu02_numericBoost hipsparseScsc2dense hipsparseScsr2csc hipsparseScsr2csr_compress hipsparseScsr2dense
        hipsparseScsrgeam hipsparseScsrgeam2 hipsparseScsrgeam2_bufferSizeExt hipsparseScsrgemm hipsparseScsrgemm2
        hipsparseScsrgemm2_bufferSizeExt hipsparseScsric02 hipsparseScsric02_analysis hipsparseScsric02_bufferSize
        hipsparseScsrilu02 hipsparseScsrilu02_analysis hipsparseScsrilu02_bufferSize hipsparseScsrilu02_numericBoost hipsparseScsrmm
        hipsparseScsrmm2 hipsparseScsrmv hipsparseScsrsm2_analysis hipsparseScsrsm2_bufferSizeExt hipsparseScsrsm2_solve
        hipsparseScsrsv2_analysis hipsparseScsrsv2_bufferSize hipsparseScsrsv2_solve hipsparseSdense2csc hipsparseSdense2csr
        hipsparseSetMatDiagType hipsparseSetMatFillMode hipsparseSetMatIndexBase hipsparseSetMatType hipsparseSetPointerMode
        hipsparseSetStream hipsparseSgthr hipsparseSgtsv2 hipsparseSgtsv2StridedBatch hipsparseSgtsv2StridedBatch_bufferSizeExt
        hipsparseSgtsv2_bufferSizeExt hipsparseSnnz hipsparseSnnz_compress hipsparseSpMM hipsparseSpMM_bufferSize hipsparseSpMV
        hipsparseSpMV_bufferSize hipsparseSpMatGetFormat hipsparseSpMatGetIndexBase hipsparseSpMatGetSize hipsparseSpMatGetValues
        hipsparseSpMatSetAttribute hipsparseSpMatSetValues hipsparseSpSM_analysis hipsparseSpSM_bufferSize hipsparseSpSM_createDescr
        hipsparseSpSM_destroyDescr hipsparseSpSM_solve hipsparseSpVV hipsparseSpVV_bufferSize hipsparseSpVecGet
        hipsparseSpVecGetIndexBase hipsparseSpVecGetValues hipsparseSpVecSetValues hipsparseSparseToDense
        hipsparseSparseToDense_bufferSize hipsparseXbsric02_zeroPivot hipsparseXbsrilu02_zeroPivot hipsparseXcoo2csr
        hipsparseXcoosortByColumn hipsparseXcoosortByRow hipsparseXcoosort_bufferSizeExt hipsparseXcscsort
        hipsparseXcscsort_bufferSizeExt hipsparseXcsr2coo hipsparseXcsrgeam2Nnz hipsparseXcsrgeamNnz hipsparseXcsrgemm2Nnz
        hipsparseXcsrgemmNnz hipsparseXcsric02_zeroPivot hipsparseXcsrilu02_zeroPivot hipsparseXcsrsm2_zeroPivot hipsparseXcsrsort
        hipsparseXcsrsort_bufferSizeExt hipsparseXcsrsv2_zeroPivot hipsparseZbsric02 hipsparseZbsric02_analysis
        hipsparseZbsric02_bufferSize hipsparseZbsrilu02 hipsparseZbsrilu02_analysis hipsparseZbsrilu02_bufferSize
        hipsparseZbsrilu02_numericBoost hipsparseZcsc2dense hipsparseZcsr2csc hipsparseZcsr2csr_compress hipsparseZcsr2dense
        hipsparseZcsrgeam hipsparseZcsrgeam2 hipsparseZcsrgeam2_bufferSizeExt hipsparseZcsrgemm hipsparseZcsrgemm2
        hipsparseZcsrgemm2_bufferSizeExt hipsparseZcsric02 hipsparseZcsric02_analysis hipsparseZcsric02_bufferSize
        hipsparseZcsrilu02 hipsparseZcsrilu02_analysis hipsparseZcsrilu02_bufferSize hipsparseZcsrilu02_numericBoost hipsparseZcsrmm
        hipsparseZcsrmm2 hipsparseZcsrmv hipsparseZcsrsm2_analysis hipsparseZcsrsm2_bufferSizeExt hipsparseZcsrsm2_solve
        hipsparseZcsrsv2_analysis hipsparseZcsrsv2_bufferSize hipsparseZcsrsv2_solve hipsparseZdense2csc hipsparseZdense2csr
        hipsparseZgthr hipsparseZgtsv2 hipsparseZgtsv2StridedBatch hipsparseZgtsv2StridedBatch_bufferSizeExt
        hipsparseZgtsv2_bufferSizeExt hipsparseZnnz hipsparseZnnz_compress
    }
    hiprand answers 1000 {
        hiprandCreateGenerator hiprandDestroyGenerator hiprandGenerate hiprandGenerateLogNormal hiprandGenerateLogNormalDouble
        hiprandGenerateNormal hiprandGenerateNormalDouble hiprandGeneratePoisson hiprandGenerateUniform hiprandGenerateUniformDouble
        hiprandGetVersion hiprandSetGeneratorOffset hiprandSetPseudoRandomGeneratorSeed hiprandSetStream
    }
    hipfft answers 16 {
        hipfftCreate hipfftDestroy hipfftExecC2C hipfftExecC2R hipfftExecD2Z hipfftExecR2C hipfftExecZ2D hipfftExecZ2Z
        hipfftGetVersion hipfftMakePlan1d hipfftMakePlanMany hipfftSetAutoAllocation hipfftSetStream hipfftSetWorkArea
    }
    rocsolver answers 2 {
        rocsolver_cgebrd rocsolver_cgeqrf rocsolver_cgeqrf_batched rocsolver_cgesdd rocsolver_cgesvd rocsolver_cgesvd_batched
        rocsolver_cgetrf rocsolver_cgetrs rocsolver_cheev rocsolver_cheev_batched rocsolver_cpotrf rocsolver_cpotrf_batched
        rocsolver_cpotrs rocsolver_cpotrs_batched rocsolver_cungqr rocsolver_cunmqr rocsolver_dgebrd rocsolver_dgeqrf
        rocsolver_dgeqrf_batched rocsolver_dgesdd rocsolver_dgesvd rocsolver_dgesvd_batched rocsolver_dgetrf rocsolver_dgetrs
        rocsolver_dorgqr rocsolver_dormqr rocsolver_dpotrf rocsolver_dpotrf_batched rocsolver_dpotrs rocsolver_dpotrs_batched
        rocsolver_dsyev rocsolver_dsyev_batched rocsolver_sgebrd rocsolver_sgeqrf rocsolver_sgeqrf_batched rocsolver_sgesdd
        rocsolver_sgesvd rocsolver_sgesvd_batched rocsolver_sgetrf rocsolver_sgetrs rocsolver_sorgqr rocsolver_sormqr
        rocsolver_spotrf rocsolver_spotrf_batched rocsolver_spotrs rocsolver_spotrs_batched rocsolver_ssyev rocsolver_ssyev_batched
        rocsolver_zgebrd rocsolver_zgeqrf rocsolver_zgeqrf_batched rocsolver_zgesdd rocsolver_zgesvd rocsolver_zgesvd_batched
        rocsolver_zgetrf rocsolver_zgetrs rocsolver_zheev rocsolver_zheev_batched rocsolver_zpotrf rocsolver_zpotrf_batched
        rocsolver_zpotrs rocsolver_zpotrs_batched rocsolver_zungqr rocsolver_zunmqr
    }
    rccl answers 3 {
        ncclAllGather ncclAllReduce ncclBcast ncclBroadcast ncclCommAbort ncclCommCount ncclCommCuDevice ncclCommDestroy
        ncclCommGetAsyncError ncclCommInitAll ncclCommInitRankConfig ncclCommSplit ncclCommUserRank ncclGetUniqueId ncclGetVersion
        ncclGroupEnd ncclGroupStart ncclRecv ncclReduce ncclReduceScatter ncclSend
    }
}
