//! Launch geometry: blocks, threads and LDS, checked against the device and the kernel.

use crate::device::DeviceLimits;
use crate::error::LaunchError;
use rocmforge_code_object::KernelMeta;

/// How many blocks of how many threads, and how much LDS on top of what the kernel declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of LDS the launch adds.
    pub dynamic_lds: u32,
}

impl LaunchConfig {
    /// `blocks` blocks of `threads` threads in one dimension.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            dynamic_lds: 0,
        }
    }

    /// The same with `bytes` of dynamic LDS.
    pub fn with_dynamic_lds(self, bytes: u32) -> Self {
        Self {
            dynamic_lds: bytes,
            ..self
        }
    }
}

/// Checks a geometry against what a device takes. `lds` is static and dynamic LDS together, in bytes.
pub fn validate_launch_config(
    grid: [u32; 3],
    block: [u32; 3],
    lds: u32,
    limits: &DeviceLimits,
) -> Result<(), LaunchError> {
    if grid.contains(&0) || block.contains(&0) {
        return Err(LaunchError::ZeroDimension { grid, block });
    }
    for (what, dims, most) in [
        ("block", block, limits.max_block_dim),
        ("grid", grid, limits.max_grid_dim),
    ] {
        for axis in 0..3 {
            if dims[axis] > most[axis] {
                return Err(LaunchError::Dimension {
                    what,
                    axis,
                    value: dims[axis],
                    limit: most[axis],
                });
            }
        }
    }
    let threads = threads_of(block);
    if threads > u64::from(limits.max_threads_per_block) {
        let limit = limits.max_threads_per_block;
        return Err(LaunchError::Threads {
            block,
            threads,
            limit,
            limited_by: "the device",
        });
    }
    for axis in 0..3 {
        let threads = u64::from(grid[axis]) * u64::from(block[axis]);
        if threads > u64::from(u32::MAX) {
            return Err(LaunchError::TotalThreads { axis, threads });
        }
    }
    if lds > limits.lds_per_block {
        return Err(LaunchError::Lds {
            fixed: 0,
            dynamic: lds,
            limit: limits.lds_per_block,
        });
    }
    Ok(())
}

/// Checks a geometry against the device and what the kernel was compiled for.
pub(super) fn check_geometry(
    kernel: &KernelMeta,
    config: &LaunchConfig,
    limits: &DeviceLimits,
) -> Result<(), LaunchError> {
    validate_launch_config(config.grid, config.block, 0, limits)?;
    let threads = threads_of(config.block);
    if threads > u64::from(kernel.max_workgroup_size) {
        return Err(LaunchError::Threads {
            block: config.block,
            threads,
            limit: kernel.max_workgroup_size,
            limited_by: "the kernel",
        });
    }
    if let Some(required) = kernel.required_workgroup_size
        && required != config.block
    {
        return Err(LaunchError::BlockSize {
            block: config.block,
            required,
        });
    }
    if u64::from(kernel.lds_size) + u64::from(config.dynamic_lds) > u64::from(limits.lds_per_block) {
        return Err(LaunchError::Lds {
            fixed: kernel.lds_size,
            dynamic: config.dynamic_lds,
            limit: limits.lds_per_block,
        });
    }
    Ok(())
}

/// Saturates: three 32-bit dimensions can be more than 64 bits.
fn threads_of(block: [u32; 3]) -> u64 {
    block
        .iter()
        .fold(1u64, |product, &dim| product.saturating_mul(u64::from(dim)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DeviceLimits = DeviceLimits {
        max_threads_per_block: 1024,
        max_block_dim: [1024, 1024, 1024],
        max_grid_dim: [u32::MAX >> 1, 65536, 65536],
        lds_per_block: 65536,
    };

    #[test]
    fn test_validate_launch_config_within_limits() {
        for (grid, block, lds) in [
            ([1, 1, 1], [1, 1, 1], 0),
            ([u32::MAX >> 11, 65536, 65536], [1024, 1, 1], 65536),
            ([7, 5, 3], [32, 32, 1], 1),
            ([1, 1, 1], [2, 2, 256], 0),
        ] {
            assert_eq!(validate_launch_config(grid, block, lds, &LIMITS), Ok(()));
        }
    }

    #[test]
    fn test_validate_launch_config_exceeds_thread_limit() {
        let error = validate_launch_config([1; 3], [1024, 2, 1], 0, &LIMITS).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Threads {
                    threads: 2048,
                    limit: 1024,
                    ..
                }
            ),
            "{error}"
        );
        let error = validate_launch_config([1; 3], [1025, 1, 1], 0, &LIMITS).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Dimension {
                    what: "block",
                    axis: 0,
                    value: 1025,
                    ..
                }
            ),
            "{error}"
        );
        let error = validate_launch_config([1, 65537, 1], [1; 3], 0, &LIMITS).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Dimension {
                    what: "grid",
                    axis: 1,
                    value: 65537,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn products_that_wrap_in_32_bits_are_refused() {
        // 65536 * 65536 is 0 in 32 bits.
        let wide = DeviceLimits {
            max_block_dim: [u32::MAX; 3],
            ..LIMITS
        };
        let error = validate_launch_config([1; 3], [65536, 65536, 1], 0, &wide).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Threads {
                    threads: 0x1_0000_0000,
                    ..
                }
            ),
            "{error}"
        );
        // Even where 64 bits are not enough.
        let error = validate_launch_config([1; 3], [u32::MAX; 3], 0, &wide).unwrap_err();
        assert!(
            matches!(error, LaunchError::Threads { threads: u64::MAX, .. }),
            "{error}"
        );
        let error = validate_launch_config([u32::MAX >> 1, 1, 1], [1024, 1, 1], 0, &LIMITS).unwrap_err();
        assert!(matches!(error, LaunchError::TotalThreads { axis: 0, .. }), "{error}");
    }

    /// What HIP finds behind the pointer it is given for each argument.
    #[test]
    fn test_validate_launch_config_zero_grid_dim() {
        for axis in 0..3 {
            let mut dims = [1; 3];
            dims[axis] = 0;
            for (grid, block) in [(dims, [1; 3]), ([1; 3], dims)] {
                let error = validate_launch_config(grid, block, 0, &LIMITS).unwrap_err();
                assert_eq!(error, LaunchError::ZeroDimension { grid, block });
            }
        }
    }

    #[test]
    fn test_validate_launch_config_exceeds_shared_memory() {
        let error = validate_launch_config([1; 3], [32, 1, 1], 65537, &LIMITS).unwrap_err();
        assert_eq!(
            error,
            LaunchError::Lds {
                fixed: 0,
                dynamic: 65537,
                limit: 65536
            }
        );
    }
}
