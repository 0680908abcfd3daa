//! Textures and surfaces: objects by which kernels read memory and arrays as images.
//!
//! An object is device memory with descriptors, and its handle the address of that, as AMD's library has it. Images have one level, and
//! their rows lie one behind the other.

use super::arrays::described;
use super::memory::{address_of, pointer_to};
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::texture::{ALIGNMENT, Dimensions, Image, MAX_PITCH, Sampler, Texture};
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

const NO_VIEW: hipResourceViewDesc = hipResourceViewDesc {
    format: hipResViewFormatNone,
    width: 0,
    height: 0,
    depth: 0,
    firstMipmapLevel: 0,
    lastMipmapLevel: 0,
    firstLayer: 0,
    lastLayer: 0,
};

/// What a surface is read by: not sampled.
const NO_TEXTURE: hipTextureDesc = hipTextureDesc {
    addressMode: [hipAddressModeWrap; 3],
    filterMode: hipFilterModePoint,
    readMode: hipReadModeElementType,
    sRGB: 0,
    borderColor: [0.0; 4],
    normalizedCoords: 0,
    maxAnisotropy: 0,
    mipmapFilterMode: hipFilterModePoint,
    mipmapLevelBias: 0.0,
    minMipmapLevelClamp: 0.0,
    maxMipmapLevelClamp: 0.0,
};

/// The elements of linear memory. Images have no elements of three parts.
fn elements(desc: &hipChannelFormatDesc) -> Hip<(hipArray_Format, u32, usize)> {
    let (format, channels) = described(desc).ok_or(hipErrorInvalidValue)?;
    fail_if(channels == 3, hipErrorInvalidValue)?;
    Ok((format, channels, desc.x as usize / 8 * channels as usize))
}

/// How a texture is sampled.
fn sampler(texture: &hipTextureDesc) -> Hip<Sampler> {
    let known = texture.addressMode.iter().all(|mode| *mode <= hipAddressModeBorder)
        && texture.filterMode <= hipFilterModeLinear
        && texture.readMode <= hipReadModeNormalizedFloat;
    fail_if(!known, hipErrorInvalidValue)?;
    // Levels, anisotropy and sRGB.
    let clamps = [
        texture.mipmapLevelBias,
        texture.minMipmapLevelClamp,
        texture.maxMipmapLevelClamp,
    ];
    let unsupported = texture.maxAnisotropy != 0 || texture.sRGB != 0 || clamps.iter().any(|value| *value != 0.0);
    fail_if(unsupported, hipErrorNotSupported)?;
    let normalised_coordinates = texture.normalizedCoords != 0;
    Ok(Sampler {
        // HIP has the other two for normalised coordinates only.
        modes: texture.addressMode.map(|mode| match mode {
            hipAddressModeWrap | hipAddressModeMirror if !normalised_coordinates => hipAddressModeClamp,
            mode => mode,
        }),
        linear: texture.filterMode == hipFilterModeLinear,
        normalised_coordinates,
    })
}

impl Call<'_> {
    /// The image that an array is.
    fn image_of_array(&self, array: hipArray_t, normalised: bool) -> Hip<Image> {
        let found = self.array(array).map_err(|_| hipErrorInvalidValue)?;
        let layered = found.flags & hipArrayLayered != 0;
        let dimensions = match (layered, found.height, found.depth) {
            (true, 0, _) => Dimensions::OneLayered,
            (true, ..) => Dimensions::TwoLayered,
            (false, 0, _) => Dimensions::One,
            (false, _, 0) => Dimensions::Two,
            _ => Dimensions::Three,
        };
        Ok(Image {
            address: found.address,
            dimensions,
            size: [found.width, found.height, found.depth],
            pitch: found.steps.row / found.element,
            format: found.format,
            channels: found.channels,
            normalised,
        })
    }

    /// Device memory of which a texture reads this many bytes.
    fn texture_memory(&self, start: *mut c_void, bytes: usize) -> Hip<u64> {
        let address = address_of(start);
        fail_if(!address.is_multiple_of(ALIGNMENT as u64), hipErrorInvalidValue)?;
        let (first, size) = self.allocation(start, hipErrorInvalidValue)?;
        let end = address.checked_add(bytes as u64).ok_or(hipErrorInvalidValue)?;
        fail_if(end > first + size, hipErrorInvalidValue)?;
        Ok(address)
    }

    /// # Safety
    /// The member of the resource is that of its type.
    unsafe fn image_of(&self, resource: &hipResourceDesc, texture: &hipTextureDesc) -> Hip<Image> {
        let normalised = texture.readMode == hipReadModeNormalizedFloat;
        match resource.resType {
            // SAFETY: promised by the caller.
            hipResourceTypeArray => self.image_of_array(unsafe { resource.res.array }, normalised),
            hipResourceTypeLinear => {
                // SAFETY: as above.
                let linear = unsafe { resource.res.linear };
                required(linear.devPtr)?;
                let (format, channels, element) = elements(&linear.desc)?;
                let width = linear.sizeInBytes / element;
                let fits = (1..i32::MAX as usize).contains(&width);
                fail_if(!fits, hipErrorInvalidValue)?;
                Ok(Image {
                    address: self.texture_memory(linear.devPtr, linear.sizeInBytes)?,
                    dimensions: Dimensions::Buffer,
                    size: [width, 0, 0],
                    pitch: width,
                    format,
                    channels,
                    normalised,
                })
            }
            hipResourceTypePitch2D => {
                // SAFETY: as above.
                let rows = unsafe { resource.res.pitch2D };
                required(rows.devPtr)?;
                let (format, channels, element) = elements(&rows.desc)?;
                let pitch = rows.pitchInBytes / element;
                let fits = (1..MAX_PITCH).contains(&rows.width)
                    && (1..MAX_PITCH).contains(&rows.height)
                    && rows.pitchInBytes.is_multiple_of(ALIGNMENT)
                    && (rows.width..=MAX_PITCH).contains(&pitch);
                fail_if(!fits, hipErrorInvalidValue)?;
                let bytes = rows.width * element + rows.pitchInBytes * (rows.height - 1);
                Ok(Image {
                    address: self.texture_memory(rows.devPtr, bytes)?,
                    dimensions: Dimensions::Two,
                    size: [rows.width, rows.height, 0],
                    pitch,
                    format,
                    channels,
                    normalised,
                })
            }
            _ => Err(hipErrorInvalidValue),
        }
    }

    /// Puts the descriptors of an object into device memory. Gives its address.
    fn create_object(&mut self, image: &Image, sampler: Option<&Sampler>, made: Texture) -> Hip<u64> {
        let gfx12 = self.cards[made.card].config.arch.starts_with("gfx12");
        let words = image.words(sampler, gfx12);
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        let address = self.allocate(made.card, bytes.len())?;
        let written = self.cards[made.card].vram.memory.write(address, &bytes);
        written.map_err(|_| hipErrorOutOfMemory)?;
        self.textures.insert(address, made);
        Ok(address)
    }

    pub(crate) unsafe fn hipCreateTextureObject(
        &mut self,
        object: *mut hipTextureObject_t,
        resource: *const hipResourceDesc,
        texture: *const hipTextureDesc,
        view: *const hipResourceViewDesc,
    ) -> Hip {
        required(object)?;
        required(resource)?;
        required(texture)?;
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let card = self.healthy_device()?;
        // SAFETY: promised by the caller of the HIP function.
        let resource = unsafe { resource.read() };
        // SAFETY: as above.
        let texture = unsafe { texture.read() };
        let kind = resource.resType;
        let mipmapped = kind == hipResourceTypeMipmappedArray;
        fail_if(
            !view.is_null() && kind != hipResourceTypeArray && !mipmapped,
            hipErrorInvalidValue,
        )?;
        if mipmapped {
            // SAFETY: the member of the type.
            let none = unsafe { resource.res.mipmap }.is_null();
            fail_if(none || texture.normalizedCoords == 0, hipErrorInvalidValue)?;
            return Err(hipErrorNotSupported);
        }
        // SAFETY: promised by the caller of the HIP function.
        let image = unsafe { self.image_of(&resource, &texture) }?;
        let sampler = sampler(&texture)?;
        let mut shown = NO_VIEW;
        if !view.is_null() {
            // SAFETY: as above.
            shown = unsafe { view.read() };
            fail_if(!is_whole(&shown, &image), hipErrorNotSupported)?;
        }
        let made = Texture {
            card,
            resource,
            texture,
            view: shown,
            surface: false,
        };
        let address = self.create_object(&image, Some(&sampler), made)?;
        // SAFETY: as above.
        unsafe { answer(object, pointer_to(address).cast()) }
    }

    pub(crate) unsafe fn hipCreateSurfaceObject(
        &mut self,
        object: *mut hipSurfaceObject_t,
        resource: *const hipResourceDesc,
    ) -> Hip {
        required(object)?;
        required(resource)?;
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let card = self.healthy_device()?;
        // SAFETY: promised by the caller of the HIP function.
        let resource = unsafe { resource.read() };
        fail_if(resource.resType != hipResourceTypeArray, hipErrorInvalidValue)?;
        // SAFETY: the member of the type.
        let image = self.image_of_array(unsafe { resource.res.array }, false)?;
        let made = Texture {
            card,
            resource,
            texture: NO_TEXTURE,
            view: NO_VIEW,
            surface: true,
        };
        let address = self.create_object(&image, None, made)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(object, pointer_to(address).cast()) }
    }

    /// The object at an address.
    fn object(&self, object: *const c_void, surface: bool) -> Hip<Texture> {
        let found = self.textures.get(&address_of(object)).copied();
        found
            .filter(|found| found.surface == surface)
            .ok_or(hipErrorInvalidValue)
    }

    fn destroy_object(&mut self, object: *mut c_void, surface: bool) -> Hip {
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        if object.is_null() {
            return Ok(());
        }
        let address = address_of(object);
        let Ok(found) = self.object(object, surface) else {
            match self.card_of(address) {
                Some(card) => self.report_dead_free(card, address),
                None => self.report(ReportKind::InvalidFree, "this never was a texture or surface object"),
            }
            return Err(hipErrorInvalidValue);
        };
        self.wait_for_card(found.card)?;
        let actor = self.as_actor();
        self.release(found.card, address, &actor);
        self.textures.remove(&address);
        Ok(())
    }

    cases! {
        fn hipDestroyTextureObject(texture_object: hipTextureObject_t) => |c| c.destroy_object(texture_object.cast(), false);
        fn hipDestroySurfaceObject(surface_object: hipSurfaceObject_t) => |c| c.destroy_object(surface_object.cast(), true);
        fn hipGetTextureObjectResourceDesc(res_desc: *mut hipResourceDesc, texture_object: hipTextureObject_t)
            => |c| { required(res_desc)?; answer(res_desc, c.object(texture_object.cast(), false)?.resource) };
        fn hipGetTextureObjectResourceViewDesc(res_view_desc: *mut hipResourceViewDesc, texture_object: hipTextureObject_t)
            => |c| { required(res_view_desc)?; answer(res_view_desc, c.object(texture_object.cast(), false)?.view) };
        fn hipGetTextureObjectTextureDesc(tex_desc: *mut hipTextureDesc, texture_object: hipTextureObject_t)
            => |c| { required(tex_desc)?; answer(tex_desc, c.object(texture_object.cast(), false)?.texture) };
    }
}

/// Whether a view shows all of an array, in its own format.
fn is_whole(view: &hipResourceViewDesc, image: &Image) -> bool {
    let first = match image.format {
        HIP_AD_FORMAT_UNSIGNED_INT8 => hipResViewFormatUnsignedChar1,
        HIP_AD_FORMAT_SIGNED_INT8 => hipResViewFormatSignedChar1,
        HIP_AD_FORMAT_UNSIGNED_INT16 => hipResViewFormatUnsignedShort1,
        HIP_AD_FORMAT_SIGNED_INT16 => hipResViewFormatSignedShort1,
        HIP_AD_FORMAT_UNSIGNED_INT32 => hipResViewFormatUnsignedInt1,
        HIP_AD_FORMAT_SIGNED_INT32 => hipResViewFormatSignedInt1,
        HIP_AD_FORMAT_HALF => hipResViewFormatHalf1,
        _ => hipResViewFormatFloat1,
    };
    let layers = match image.dimensions {
        Dimensions::OneLayered | Dimensions::TwoLayered => image.size[2].saturating_sub(1) as u32,
        _ => 0,
    };
    view.format == first + image.channels / 2
        && [view.width, view.height, view.depth] == image.size
        && [view.firstMipmapLevel, view.lastMipmapLevel, view.firstLayer] == [0; 3]
        && view.lastLayer == layers
}
