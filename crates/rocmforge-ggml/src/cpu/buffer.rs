//! CPU memory of one tensor: owned words, or bytes owned elsewhere.

use std::collections::TryReserveError;
use std::fmt;
use std::sync::Arc;

/// From this size on an allocation is tried before it is made: a graph may ask for more than there is.
const LARGE: usize = 1 << 26;

/// Bytes that others own and that never change, such as a tensor in a mapped model file.
pub trait SharedBytes: Send + Sync {
    /// The bytes: the same slice at every call.
    fn bytes(&self) -> &[u8];
}

impl SharedBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Memory of one tensor. Its first byte is aligned to 4, so that f32 and u32 can be read in place.
#[derive(Clone, Debug)]
pub struct CpuBuffer(Memory);

#[derive(Clone)]
enum Memory {
    Own(Vec<u32>),
    Shared(Arc<dyn SharedBytes>),
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(words) => write!(f, "Own({} bytes)", words.len() * 4),
            Self::Shared(shared) => write!(f, "Shared({} bytes)", shared.bytes().len()),
        }
    }
}

impl Default for CpuBuffer {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl PartialEq for CpuBuffer {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl CpuBuffer {
    /// `bytes` zero bytes, rounded up to whole words.
    #[must_use]
    pub fn zeroed(bytes: usize) -> Self {
        Self(Memory::Own(vec![0; bytes.div_ceil(4)]))
    }

    /// [`Self::zeroed`], or an error where the system has no room for so many bytes.
    ///
    /// # Errors
    /// The allocator's.
    pub fn try_zeroed(bytes: usize) -> Result<Self, TryReserveError> {
        // The trial touches no memory. Small sizes do without: a process that cannot have them cannot go on.
        if bytes >= LARGE {
            Vec::<u32>::new().try_reserve_exact(bytes.div_ceil(4))?;
        }
        Ok(Self::zeroed(bytes))
    }

    /// A copy of f32 values.
    #[must_use]
    pub fn from_f32(values: &[f32]) -> Self {
        Self(Memory::Own(bytemuck::cast_slice(values).to_vec()))
    }

    /// A copy of bytes, padded with zeros to whole words.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut buffer = vec![0u32; bytes.len().div_ceil(4)];
        bytemuck::cast_slice_mut(&mut buffer)[..bytes.len()].copy_from_slice(bytes);
        Self(Memory::Own(buffer))
    }

    /// Memory that stays where it is. Bytes that do not start at a multiple of 4 are copied.
    #[must_use]
    pub fn shared(bytes: Arc<dyn SharedBytes>) -> Self {
        if (bytes.bytes().as_ptr() as usize).is_multiple_of(4) {
            Self(Memory::Shared(bytes))
        } else {
            Self::from_bytes(bytes.bytes())
        }
    }

    /// Whether the bytes are owned elsewhere.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.0, Memory::Shared(_))
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Own(words) => bytemuck::cast_slice(words),
            Memory::Shared(shared) => shared.bytes(),
        }
    }

    /// All bytes, for changes. Shared bytes are copied first: the others keep theirs.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if let Memory::Shared(shared) = &self.0 {
            *self = Self::from_bytes(shared.bytes());
        }
        match &mut self.0 {
            Memory::Own(words) => bytemuck::cast_slice_mut(words),
            Memory::Shared(_) => &mut [],
        }
    }
}
