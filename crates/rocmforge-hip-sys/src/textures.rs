//! Textures and surfaces: what a kernel reads memory and arrays through, as images with coordinates.

use crate::macros::{constants, handles, structs};
use crate::memory::{hipChannelFormatDesc, hipMipmappedArray_t};
use crate::types::hipArray_t;
use std::ffi::{c_float, c_int, c_uint, c_void};

handles! {
    /// A texture object: the device address of the descriptors that kernels read it by.
    __hip_texture => hipTextureObject_t;
    /// A surface object.
    __hip_surface => hipSurfaceObject_t;
}

constants! {
    /// What a texture or surface is made of.
    hipResourceType: c_uint {
        hipResourceTypeArray = 0,
        hipResourceTypeMipmappedArray = 1,
        hipResourceTypeLinear = 2,
        hipResourceTypePitch2D = 3,
    }
    /// What elements are read as. Each kind of part has three formats one after the other: of one, two and four parts.
    hipResourceViewFormat: c_uint {
        hipResViewFormatNone = 0x00,
        hipResViewFormatUnsignedChar1 = 0x01,
        hipResViewFormatSignedChar1 = 0x04,
        hipResViewFormatUnsignedShort1 = 0x07,
        hipResViewFormatSignedShort1 = 0x0a,
        hipResViewFormatUnsignedInt1 = 0x0d,
        hipResViewFormatSignedInt1 = 0x10,
        hipResViewFormatHalf1 = 0x13,
        hipResViewFormatFloat1 = 0x16,
    }
    /// What is read outside of a texture.
    hipTextureAddressMode: c_uint {
        hipAddressModeWrap = 0,
        hipAddressModeClamp = 1,
        hipAddressModeMirror = 2,
        hipAddressModeBorder = 3,
    }
    /// What is read between elements.
    hipTextureFilterMode: c_uint {
        hipFilterModePoint = 0,
        hipFilterModeLinear = 1,
    }
    /// What integers are read as.
    hipTextureReadMode: c_uint {
        hipReadModeElementType = 0,
        hipReadModeNormalizedFloat = 1,
    }
}

structs! {
    /// How a texture is read.
    hipTextureDesc: "hipTextureDesc", 5, u32::MAX => {
        addressMode: [hipTextureAddressMode; 3],
        filterMode: hipTextureFilterMode,
        readMode: hipTextureReadMode,
        sRGB: c_int,
        borderColor: [c_float; 4],
        normalizedCoords: c_int,
        maxAnisotropy: c_uint,
        mipmapFilterMode: hipTextureFilterMode,
        mipmapLevelBias: c_float,
        minMipmapLevelClamp: c_float,
        maxMipmapLevelClamp: c_float,
    }
    /// The part of an array that a texture shows, and the format that it shows it in.
    hipResourceViewDesc: "hipResourceViewDesc", 5, u32::MAX => {
        format: hipResourceViewFormat,
        width: usize,
        height: usize,
        depth: usize,
        firstMipmapLevel: c_uint,
        lastMipmapLevel: c_uint,
        firstLayer: c_uint,
        lastLayer: c_uint,
    }
}

/// Memory of one dimension: a member of [`hipResource`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipResourceLinear {
    /// Its first byte.
    pub devPtr: *mut c_void,
    /// Its elements.
    pub desc: hipChannelFormatDesc,
    /// Its bytes.
    pub sizeInBytes: usize,
}

/// Memory with rows: a member of [`hipResource`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipResourcePitch2D {
    /// Its first byte.
    pub devPtr: *mut c_void,
    /// Its elements.
    pub desc: hipChannelFormatDesc,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes from one row to the next.
    pub pitchInBytes: usize,
}

/// What a resource consists of, by its type.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hipResource {
    /// Of `hipResourceTypeArray`.
    pub array: hipArray_t,
    /// Of `hipResourceTypeMipmappedArray`.
    pub mipmap: hipMipmappedArray_t,
    /// Of `hipResourceTypeLinear`.
    pub linear: hipResourceLinear,
    /// Of `hipResourceTypePitch2D`.
    pub pitch2D: hipResourcePitch2D,
}

/// What a texture or surface is made of.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipResourceDesc {
    /// Which member of the union it is.
    pub resType: hipResourceType,
    /// The memory or array.
    pub res: hipResource,
}
