//! Faults: indices on the device that a kernel found out of range.

use rocmforge_runtime::HipBuffer;

/// Bits of the word, from the top: tag, position, index.
const TAG_SHIFT: u32 = 52;
const POSITION_SHIFT: u32 = 32;
/// Positions from here on are given as this one.
const MAX_POSITION: u64 = (1 << 20) - 1;
/// Tags have the bits above.
pub(crate) const MAX_TAG: usize = (1 << (u64::BITS - TAG_SHIFT)) - 1;

/// Where kernels report an index that is out of range.
///
/// Ids, positions, slots and block numbers live on the device, so a launcher cannot check them. A kernel that finds one out of range
/// accesses nothing with it and writes a [`Fault`] into the word, of all faults the one with the smallest tag, then position, then
/// index: the result does not depend on the order of work. Launches that share a word are distinguished by their tag.
///
/// ```
/// use rocmforge_kernels::{Fault, Faults, Kernels, WeightType};
/// use rocmforge_runtime::{HipBackend, HipBuffer};
///
/// # fn on(backend: &std::sync::Arc<HipBackend>) -> Result<(), Box<dyn std::error::Error>> {
/// let (kernels, stream) = (Kernels::load(backend)?, backend.stream());
/// let table = HipBuffer::from_slice(stream, &[0u8; 3 * 8], "3 rows of 2 weights")?;
/// let ids = HipBuffer::from_slice(stream, &[2u32, 7], "ids")?;
/// let y = HipBuffer::from_slice(stream, &[0f32; 4], "rows")?;
/// let word = HipBuffer::from_slice(stream, &[Fault::NONE], "fault")?;
///
/// let faults = Faults { word: &word, tag: 5 };
/// kernels.get_rows_of_tables(stream, WeightType::F32, &table, &ids, &y, [1, 3, 2], faults)?;
/// let fault = Fault::decode(word.to_vec(stream)?[0]).expect("there is no row 7");
/// assert_eq!((fault.tag, fault.position, fault.index), (5, 1, 7));
/// # Ok(())
/// # }
/// # let gpu = rocmforge_testkit::gpu(); // a simulated gfx1100
/// # on(gpu.backend()).unwrap();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Faults<'a> {
    /// One element, [`Fault::NONE`] to begin with.
    pub word: &'a HipBuffer<u64>,
    /// Names the launch: less than 4096.
    pub tag: u32,
}

/// An index that was out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The tag of the launch.
    pub tag: u32,
    /// Which of the launch's indices it was (a row, a token), or 2^20 - 1 for that one and all after it.
    pub position: u32,
    /// The index.
    pub index: u32,
}

impl Fault {
    /// The word's value while there is no fault.
    pub const NONE: u64 = u64::MAX;

    /// What a word says. `None`: no fault.
    pub const fn decode(word: u64) -> Option<Self> {
        if word == Self::NONE {
            return None;
        }
        Some(Self {
            tag: (word >> TAG_SHIFT) as u32,
            position: (word >> POSITION_SHIFT & MAX_POSITION) as u32,
            index: word as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_fields_have_12_20_and_32_bits() {
        assert_eq!(Fault::decode(Fault::NONE), None);
        let fault = |tag, position, index| Some(Fault { tag, position, index });
        assert_eq!(Fault::decode(0), fault(0, 0, 0));
        assert_eq!(Fault::decode(0xABCD_EF01_2345_6789), fault(0xABC, 0xDEF01, 0x2345_6789));
    }
}
