//! Limits of a kernel's demands, checked before anything is allocated for it.

use rocmforge_code_object::KernelMeta;

/// Argument segments and private memory beyond these are damage: what a launch may pass, and the 8 MiB of private memory a
/// wave can have.
const MAX_KERNARG: u32 = 64 << 10;
const MAX_PRIVATE: u32 = 256 << 10;

/// What of a kernel's needs no device has.
pub(crate) fn limits(meta: &KernelMeta) -> Result<(), String> {
    if meta.kernarg_size > MAX_KERNARG {
        return Err(format!(
            "{} B of arguments ({MAX_KERNARG} B at most)",
            meta.kernarg_size
        ));
    }
    if meta.private_size > MAX_PRIVATE {
        return Err(format!(
            "{} B of private memory for each work-item ({MAX_PRIVATE} B at most)",
            meta.private_size
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_needs_are_refused_before_anything_is_allocated_for_them() {
        let needs = |kernarg_size, private_size| {
            limits(&KernelMeta {
                kernarg_size,
                private_size,
                ..KernelMeta::default()
            })
        };
        assert_eq!(needs(MAX_KERNARG, MAX_PRIVATE), Ok(()));
        assert!(needs(u32::MAX, 0).is_err_and(|what| what.contains("arguments")));
        assert!(needs(0, u32::MAX).is_err_and(|what| what.contains("private memory")));
    }
}
