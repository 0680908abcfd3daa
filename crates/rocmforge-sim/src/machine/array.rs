//! Arrays: memory with elements and up to three dimensions.

use crate::machine::steps::Steps;
use rocmforge_hip_sys::*;

/// An array.
#[derive(Clone, Copy)]
pub(crate) struct Array {
    pub(crate) card: usize,
    pub(crate) address: u64,
    pub(crate) steps: Steps,
    /// In elements. Heights and depths of 0 are those of arrays without that dimension.
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    /// Bytes of an element.
    pub(crate) element: usize,
    pub(crate) format: hipArray_Format,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

impl Array {
    /// The format as HIP describes it.
    pub(crate) fn description(&self) -> hipChannelFormatDesc {
        let (bits, f) = format_of(self.format).unwrap_or((0, hipChannelFormatKindNone));
        let part = |index: u32| if index < self.channels { bits } else { 0 };
        hipChannelFormatDesc {
            x: part(0),
            y: part(1),
            z: part(2),
            w: part(3),
            f,
        }
    }
}

/// Bits of a part, and what the parts are.
pub(crate) fn format_of(format: hipArray_Format) -> Option<(i32, hipChannelFormatKind)> {
    Some(match format {
        HIP_AD_FORMAT_UNSIGNED_INT8 => (8, hipChannelFormatKindUnsigned),
        HIP_AD_FORMAT_UNSIGNED_INT16 => (16, hipChannelFormatKindUnsigned),
        HIP_AD_FORMAT_UNSIGNED_INT32 => (32, hipChannelFormatKindUnsigned),
        HIP_AD_FORMAT_SIGNED_INT8 => (8, hipChannelFormatKindSigned),
        HIP_AD_FORMAT_SIGNED_INT16 => (16, hipChannelFormatKindSigned),
        HIP_AD_FORMAT_SIGNED_INT32 => (32, hipChannelFormatKindSigned),
        HIP_AD_FORMAT_HALF => (16, hipChannelFormatKindFloat),
        HIP_AD_FORMAT_FLOAT => (32, hipChannelFormatKindFloat),
        _ => return None,
    })
}
