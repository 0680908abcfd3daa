//! Descriptors of textures and surfaces: what a kernel reads at the address that is the object's handle.
//!
//! HIP's device functions expect twelve words of an image and eight of a sampler there. The first words are the hardware's resource
//! descriptor: of a buffer, or of an image of linear rows. Their fields are those of AMD's RDNA3 and RDNA4 guides, filled in as ROCm's
//! runtime does it; behind them that puts the kind and order of the parts and the width, by which HIP's functions scale coordinates.

use rocmforge_hip_sys::*;

/// Words of an object.
pub(crate) const WORDS: usize = 20;
/// Where the sampler begins.
const SAMPLER: usize = 12;
/// Images begin at multiples of this, and so do the rows of those with slices.
pub(crate) const ALIGNMENT: usize = 256;
/// The longest distance between rows of an image without slices, in elements.
pub(crate) const MAX_PITCH: usize = 1 << 14;

/// A texture or surface object, as the program has described it.
#[derive(Clone, Copy)]
pub(crate) struct Texture {
    pub(crate) card: usize,
    pub(crate) resource: hipResourceDesc,
    pub(crate) texture: hipTextureDesc,
    pub(crate) view: hipResourceViewDesc,
    pub(crate) surface: bool,
}

// SAFETY: its pointers are handles and addresses of the program, which are given back to it and never followed.
unsafe impl Send for Texture {}

/// Dimensions of an image: the number that descriptors have for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dimensions {
    /// Elements in a row, without an end that coordinates could be scaled by.
    Buffer = 0,
    One = 8,
    Two = 9,
    Three = 10,
    OneLayered = 12,
    TwoLayered = 13,
}

/// Memory that is read as an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image {
    pub(crate) address: u64,
    pub(crate) dimensions: Dimensions,
    /// In elements; the last is the depth or the number of layers.
    pub(crate) size: [usize; 3],
    /// From row to row, in elements.
    pub(crate) pitch: usize,
    pub(crate) format: hipArray_Format,
    pub(crate) channels: u32,
    /// Integers of 8 and 16 bits are read as fractions of the largest.
    pub(crate) normalised: bool,
}

/// How an image is sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampler {
    pub(crate) modes: [hipTextureAddressMode; 3],
    pub(crate) linear: bool,
    pub(crate) normalised_coordinates: bool,
}

impl Image {
    /// Bits of a part, and its kind: the number that the formats of a size have it by.
    fn part(&self) -> (u32, u32) {
        const UNORM: u32 = 0;
        const SNORM: u32 = 1;
        const UINT: u32 = 4;
        const SINT: u32 = 5;
        const FLOAT: u32 = 6;
        let (unsigned, signed) = if self.normalised { (UNORM, SNORM) } else { (UINT, SINT) };
        match self.format {
            HIP_AD_FORMAT_UNSIGNED_INT8 => (8, unsigned),
            HIP_AD_FORMAT_SIGNED_INT8 => (8, signed),
            HIP_AD_FORMAT_UNSIGNED_INT16 => (16, unsigned),
            HIP_AD_FORMAT_SIGNED_INT16 => (16, signed),
            HIP_AD_FORMAT_HALF => (16, FLOAT),
            HIP_AD_FORMAT_UNSIGNED_INT32 => (32, UINT),
            HIP_AD_FORMAT_SIGNED_INT32 => (32, SINT),
            _ => (32, FLOAT),
        }
    }

    /// The number of the format.
    fn format_number(&self) -> u32 {
        let (bits, kind) = self.part();
        let first = match (bits, self.channels) {
            (8, 1) => 1,
            (16, 1) => 7,
            (8, 2) => 14,
            (32, 1) => 20,
            (16, 2) => 23,
            (8, _) => 42,
            (32, 2) => 48,
            (16, _) => 51,
            _ => 61,
        };
        // Those of 32 bits are integers and floats only.
        first + if bits == 32 { kind - 4 } else { kind }
    }

    /// What the four values that a load gives are made of; parts that are not there are 0, and the fourth is 1.
    fn select(&self) -> u32 {
        let [x, y, z, w] = match self.channels {
            1 => [4, 0, 0, 1],
            2 => [4, 5, 0, 1],
            _ => [4, 5, 6, 7],
        };
        x | y << 3 | z << 6 | w << 9
    }

    /// `hsa_ext_image_channel_type_t` and `hsa_ext_image_channel_order_t`, which HIP's functions for surfaces look at.
    fn hsa_format(&self) -> (u32, u32) {
        let kind = match (self.part(), self.format) {
            ((8, 1), _) => 0,
            ((16, 1), _) => 1,
            ((8, 0), _) => 2,
            ((16, 0), _) => 3,
            (_, HIP_AD_FORMAT_SIGNED_INT8) => 8,
            (_, HIP_AD_FORMAT_SIGNED_INT16) => 9,
            (_, HIP_AD_FORMAT_SIGNED_INT32) => 10,
            (_, HIP_AD_FORMAT_UNSIGNED_INT8) => 11,
            (_, HIP_AD_FORMAT_UNSIGNED_INT16) => 12,
            (_, HIP_AD_FORMAT_UNSIGNED_INT32) => 13,
            (_, HIP_AD_FORMAT_HALF) => 14,
            _ => 15,
        };
        let order = match self.channels {
            1 => 1,
            2 => 3,
            _ => 8,
        };
        (kind, order)
    }

    /// Bytes of an element.
    fn element(&self) -> u32 {
        self.part().0 / 8 * self.channels
    }

    /// The words of an object of a card, which is a gfx1201 or a gfx1100.
    pub(crate) fn words(&self, sampler: Option<&Sampler>, gfx12: bool) -> [u32; WORDS] {
        let mut words = [0; WORDS];
        let less_one = |size: usize| size.saturating_sub(1) as u32;
        if self.dimensions == Dimensions::Buffer {
            words[0] = self.address as u32;
            words[1] = (self.address >> 32) as u32 & 0xffff | self.element() << 16;
            words[2] = self.size[0] as u32;
            words[3] = self.select() | self.format_number() << 12;
        } else {
            let (width, height) = (less_one(self.size[0]), less_one(self.size[1]));
            words[0] = (self.address >> 8) as u32;
            words[1] = (self.address >> 40) as u32 & 0xff | (width & 3) << 30;
            words[1] |= self.format_number() << if gfx12 { 17 } else { 20 };
            words[2] = width >> 2 | height << 14;
            words[3] = self.select() | (self.dimensions as u32) << 28;
            words[4] = match self.dimensions {
                Dimensions::One | Dimensions::Two => less_one(self.pitch),
                _ => less_one(self.size[2]),
            };
        }
        let (kind, order) = self.hsa_format();
        (words[8], words[9], words[10]) = (kind, order, self.size[0] as u32);
        if let Some(sampler) = sampler {
            words[SAMPLER..SAMPLER + 4].copy_from_slice(&sampler.words(gfx12));
        }
        words
    }
}

impl Sampler {
    fn words(&self, gfx12: bool) -> [u32; 4] {
        let mode = |n: usize| match self.modes[n] {
            hipAddressModeWrap => 0,
            hipAddressModeMirror => 1,
            hipAddressModeBorder => 6,
            // The last texel.
            _ => 2,
        };
        let force_unnormalised = u32::from(!self.normalised_coordinates) << 15;
        let filter = u32::from(self.linear);
        // The border is transparent black, whatever the program asks for: ROCm's runtime leaves these fields as they are.
        [
            mode(0) | mode(1) << 3 | mode(2) << 6 | force_unnormalised,
            4095 << if gfx12 { 13 } else { 12 },
            filter << 20 | filter << 22,
            0,
        ]
    }
}
