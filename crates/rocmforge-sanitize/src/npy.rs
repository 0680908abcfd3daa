//! NumPy's array files, version 1: enough to fill buffers and to look at results.

/// An array in a file.
pub(crate) struct Array<'a> {
    /// Its type: `<f4`.
    pub(crate) descr: &'a str,
    /// Its elements.
    pub(crate) data: &'a [u8],
}

/// Bytes before the data, at most: of larger headers NumPy itself warns.
pub(crate) const MAX_HEADER: u64 = 64 << 10;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array. None if the file does not start like one.
pub(crate) fn parse(bytes: &[u8]) -> Option<Result<Array<'_>, String>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    Some(array(rest).ok_or_else(|| "the .npy header is damaged, or its array is not in C order".to_owned()))
}

fn array(rest: &[u8]) -> Option<Array<'_>> {
    let (version, rest) = rest.split_at_checked(2)?;
    let (length, rest) = match version[0] {
        1 => (
            usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?)),
            rest.get(2..)?,
        ),
        _ => (
            usize::try_from(u32::from_le_bytes(rest.get(..4)?.try_into().ok()?)).ok()?,
            rest.get(4..)?,
        ),
    };
    let (header, data) = rest.split_at_checked(length)?;
    let header = std::str::from_utf8(header).ok()?;
    let (_, descr) = header.split_once("'descr':")?;
    let descr = descr.split('\'').nth(1)?;
    let (_, order) = header.split_once("'fortran_order':")?;
    order.trim_start().starts_with("False").then_some(Array { descr, data })
}

/// An array file of `data`.
pub(crate) fn write(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let dimensions: Vec<String> = shape.iter().map(|n| format!("{n},")).collect();
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        dimensions.join(" ")
    );
    // The data starts at a multiple of 64; the header ends with a line break.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    // A shape has at most 16 numbers, so the header is far below 64 KiB.
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let file = write("<f4", &[2, 3], &[7; 24]);
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let header = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((10 + header) % 64, 0, "the data is aligned");
        assert_eq!(file.len(), 10 + header + 24);
        let text = std::str::from_utf8(&file[10..10 + header]).unwrap();
        assert!(
            text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }"),
            "{text}"
        );
        let array = parse(&file).unwrap().unwrap();
        assert_eq!((array.descr, array.data), ("<f4", &[7; 24][..]));
    }

    #[test]
    fn damaged_files_are_refused() {
        assert!(parse(b"anything").is_none());
        let good = write("<f4", &[4], &[0; 16]);
        for cut in 6..74 {
            let result = parse(&good[..cut]);
            assert!(result.is_some_and(|r| r.is_err()), "cut at {cut}");
        }
        let fortran = String::from_utf8_lossy(&good[6..]).replace("False", "True ");
        let mut bad = MAGIC.to_vec();
        bad.extend(fortran.as_bytes());
        assert!(parse(&bad).unwrap().is_err());
    }
}
