//! Images in memory whose length is not known, as HIP gets them: an ELF file, or an offload bundle.

use super::{Bundle, BundleError, COMPRESSED, Compressed, MAX_ENTRIES, MAX_UNPACKED, PLAIN, table};
use std::borrow::Cow;
use std::io::{BufRead, Read};

/// Host pages: a read that starts inside of one and ends with it cannot fail because of its length.
const PAGE: usize = 4096;

/// Image at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image<'a> {
    /// A code object, or another ELF file, as long as its tables say.
    Elf(&'a [u8]),
    /// An offload bundle.
    Bundle(Bundle<'a>),
}

impl<'a> Image<'a> {
    /// Finds the kind and length of the image at `image`, from its own tables. `None` if it starts like neither.
    ///
    /// # Safety
    /// An ELF file or a bundle lies at `image` and stays there for `'a`; or at least bytes up to where it stops looking like one.
    ///
    /// # Errors
    /// It starts like a bundle, and is damaged or of a kind that is not read here.
    pub unsafe fn at(image: *const u8) -> Result<Option<Self>, BundleError> {
        // SAFETY: promised by the caller.
        unsafe { Self::at_if(image, |_, _| true) }
    }

    /// The same, where `there` knows whether the process has so many bytes at an address: an image whose tables lead to others is `None` or
    /// damaged.
    ///
    /// # Safety
    /// As for [`Self::at`], of the bytes that `there` knows.
    ///
    /// # Errors
    /// As for [`Self::at`].
    pub unsafe fn at_if(
        image: *const u8,
        there: impl Fn(*const u8, usize) -> bool,
    ) -> Result<Option<Self>, BundleError> {
        if !there(image, 1) {
            return Ok(None);
        }
        // SAFETY: promised by the caller, here and below: each byte of a start that matched is there.
        if unsafe { starts_with(image, b"\x7fELF\x02\x01") } {
            // SAFETY: it starts like an ELF file of 64 bits.
            let size = unsafe { elf_size(image, &there) };
            return Ok(size.filter(|size| there(image, *size)).map(|size| {
                // SAFETY: the file's own tables say that it has this size.
                Self::Elf(unsafe { std::slice::from_raw_parts(image, size) })
            }));
        }
        // SAFETY: as above.
        if unsafe { starts_with(image, PLAIN) } {
            // SAFETY: it starts like a plain bundle.
            let bytes = unsafe { plain(image, &there) }?;
            return Bundle::parse(bytes).map(|bundle| bundle.map(Self::Bundle));
        }
        // SAFETY: as above.
        if !unsafe { starts_with(image, COMPRESSED) } {
            return Ok(None);
        }
        if !there(image, Compressed::LONGEST) {
            return Err(BundleError::damaged("it ends within its header"));
        }
        // SAFETY: no compressed bundle is shorter than the longest header: its data and the hash are longer than 12 bytes.
        let header = Compressed::parse(unsafe { std::slice::from_raw_parts(image, Compressed::LONGEST) })?;
        if header.total.is_some_and(|total| total > MAX_UNPACKED) {
            return Err(BundleError::TooLarge);
        }
        let data = Pages {
            next: image.wrapping_add(header.data),
            left: header
                .total
                .map_or(usize::MAX, |total| total as usize - (total as usize).min(header.data)),
            lifetime: std::marker::PhantomData,
        };
        let bytes = header.unpack(data)?;
        let entries = table(&bytes)?;
        Ok(Some(Self::Bundle(Bundle {
            bytes: Cow::Owned(bytes),
            entries,
        })))
    }
}

/// # Safety
/// Bytes lie at `image` up to the first that differs from `magic`.
unsafe fn starts_with(image: *const u8, magic: &[u8]) -> bool {
    magic.iter().enumerate().all(|(at, expected)| {
        // SAFETY: every byte before was as expected, so the caller's promise covers this one.
        (unsafe { image.wrapping_add(at).read() }) == *expected
    })
}

/// The whole plain bundle at `image`.
///
/// # Safety
/// One lies there, for `'a`.
unsafe fn plain<'a>(image: *const u8, there: &dyn Fn(*const u8, usize) -> bool) -> Result<&'a [u8], BundleError> {
    let too_large = |end: u64| usize::try_from(end).ok().filter(|end| *end as u64 <= MAX_UNPACKED);
    let slice = |length: usize| {
        if !there(image, length) {
            return Err(BundleError::damaged("its tables lead to memory that is not there"));
        }
        // SAFETY: promised by the caller, of bytes that are there: a bundle has what its own numbers say.
        Ok(unsafe { std::slice::from_raw_parts(image, length) })
    };
    let number = |at: usize| {
        let field = &slice(at + 8)?[at..];
        Ok::<_, BundleError>(u64::from_le_bytes(field.try_into().unwrap_or_default()))
    };
    let count = number(PLAIN.len())?;
    if count > MAX_ENTRIES {
        return Err(BundleError::damaged(format_args!(
            "it says that it has {count} entries"
        )));
    }
    let (mut at, mut end) = (PLAIN.len() + 8, (PLAIN.len() + 8) as u64);
    for _ in 0..count {
        let (offset, size, length) = (number(at)?, number(at + 8)?, number(at + 16)?);
        end = end.max(offset.saturating_add(size));
        let next = (at as u64 + 24).saturating_add(length);
        end = end.max(next);
        at = too_large(next).ok_or(BundleError::TooLarge)?;
    }
    slice(too_large(end).ok_or(BundleError::TooLarge)?)
}

/// Size of the ELF file of 64 bits at `image`, from its own tables; `None` if these make no sense.
///
/// # Safety
/// One lies there.
unsafe fn elf_size(image: *const u8, there: &dyn Fn(*const u8, usize) -> bool) -> Option<usize> {
    if !there(image, 64) {
        return None;
    }
    // SAFETY: promised by the caller: its header of 64 bytes is there.
    let header = unsafe { std::slice::from_raw_parts(image, 64) };
    let [programs, sections] = [(32, 54), (40, 58)].map(|(offset, size)| {
        let entry = usize::from(u16_at(header, size));
        let count = usize::from(u16_at(header, size + 2));
        usize::try_from(u64_at(header, offset))
            .ok()
            .and_then(|start| Some((start, entry, start.checked_add(entry * count)?)))
    });
    let (programs, sections) = (programs?, sections?);
    let tables = programs.2.max(sections.2).max(64);
    if tables as u64 > MAX_UNPACKED || !there(image, tables) {
        return None;
    }
    // SAFETY: the header says that its tables end there.
    let bytes = unsafe { std::slice::from_raw_parts(image, tables) };
    let mut end = tables as u64;
    // File offset and size of what the entries describe; a section without bytes in the file has type 8.
    for (table, offset, size, skip) in [(programs, 8, 32, None), (sections, 24, 32, Some(8))] {
        let (start, entry, stop) = table;
        for at in (start..stop).step_by(entry.max(1)).filter(|_| entry >= 40) {
            if skip.is_some_and(|kind| u32::from(u16_at(bytes, at + 4)) == kind) {
                continue;
            }
            end = end.max(u64_at(bytes, at + offset).saturating_add(u64_at(bytes, at + size)));
        }
    }
    usize::try_from(end).ok().filter(|end| *end as u64 <= MAX_UNPACKED)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    if let Some(found) = bytes.get(at..at + 8) {
        value.copy_from_slice(found);
    }
    u64::from_le_bytes(value)
}

/// Compressed data in memory whose end is known to the decoder alone: gives it the bytes of one page at a time, so that nothing
/// is read behind the page in which the data ends.
struct Pages<'a> {
    next: *const u8,
    left: usize,
    lifetime: std::marker::PhantomData<&'a [u8]>,
}

impl BufRead for Pages<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        let length = (PAGE - self.next.addr() % PAGE).min(self.left);
        // SAFETY: the decoder has not seen the end of the data, so that its next byte is there, and with it the rest of its page.
        Ok(unsafe { std::slice::from_raw_parts(self.next, length) })
    }

    fn consume(&mut self, amount: usize) {
        self.next = self.next.wrapping_add(amount);
        self.left -= amount.min(self.left);
    }
}

impl Read for Pages<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = self.fill_buf()?.read(out)?;
        self.consume(length);
        Ok(length)
    }
}
