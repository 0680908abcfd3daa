//! Refusals of a card: errors that say that it has no memory for something, or that nothing may be launched on it now.

use std::error::Error;

use rocmforge_attention::AttentionError;
use rocmforge_kernels::KernelError;
use rocmforge_runtime::HipError;

use crate::GgmlError;

/// Whether an error says that a card has no memory for something.
pub(crate) fn is_out_of_memory(error: &GgmlError) -> bool {
    hip_error(error).is_some_and(HipError::is_out_of_memory)
}

/// Whether an error says that nothing may be launched until memory has been given back.
pub(crate) fn is_stopped(error: &GgmlError) -> bool {
    matches!(hip_error(error), Some(HipError::LaunchesStopped(_)))
}

/// The runtime's error that an error of a backend was made of.
fn hip_error(error: &GgmlError) -> Option<&HipError> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(hip) = error.downcast_ref().or_else(|| within(error)) {
            return Some(hip);
        }
        cause = error.source();
    }
    None
}

/// The runtime's error within one of the kernels' or of attention. It is not among their sources: they show it as their own.
fn within<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HipError> {
    let kernel = match error.downcast_ref() {
        Some(AttentionError::Kernel(error)) => Some(error),
        Some(AttentionError::Scratch { source, .. }) => return Some(source),
        Some(_) => None,
        None => error.downcast_ref(),
    };
    match kernel? {
        KernelError::Hip(hip) => Some(hip),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rocmforge_memory::{Bytes, DeviceKey, LaunchesStopped};

    use super::*;
    use crate::error::failed;

    fn stopped() -> HipError {
        let stopped = LaunchesStopped {
            device: DeviceKey::new("sim:0"),
            budget: Bytes(0),
            own: Bytes(1),
            others: Bytes(2),
            total: Bytes(2),
            evicting: false,
        };
        HipError::LaunchesStopped(stopped.into())
    }

    #[test]
    fn a_refusal_is_found_within_the_errors_of_all_layers() {
        let in_scratch = AttentionError::Scratch {
            bytes: Bytes(4),
            shape: [1; 4],
            source: Box::new(stopped()),
        };
        let errors = [
            failed("hip", "an op")(stopped()),
            failed("hip", "an op")(KernelError::Hip(stopped())),
            failed("hip", "an op")(AttentionError::Kernel(KernelError::Hip(stopped()))),
            failed("hip", "an op")(in_scratch),
            failed("hybrid", "a copy")(failed("hip", "an op")(KernelError::Hip(stopped()))),
        ];
        for error in errors {
            assert!(is_stopped(&error) && !is_out_of_memory(&error), "{error:?}");
        }
        let other = GgmlError::TooManyCards { most: 1 };
        assert!(!is_stopped(&other) && !is_out_of_memory(&other));
    }
}
