//! Output that outlives its reader: `doctor | head -1` is no error, and a supervisor whose terminal has gone
//! still ends its tests and writes its reports.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether output was lost for another reason than a closed reader: a full disk, for example.
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard output. `println!` would panic where the reader has closed it.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::print::line(std::io::stdout().lock(), format_args!($($text)*)) };
}

/// Writes a line to standard error. `eprintln!` would panic where the reader has closed it.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::print::line(std::io::stderr().lock(), format_args!($($text)*)) };
}

/// Writes `text` as a line of `to`, control characters made visible, and drops it if the reader has closed the output.
pub fn line(mut to: impl Write, text: fmt::Arguments<'_>) {
    let text = crate::text::visible(&text.to_string());
    let Err(error) = writeln!(to, "{text}").and_then(|()| to.flush()) else {
        return;
    };
    // A terminal that has gone answers EIO.
    let gone =
        error.kind() == ErrorKind::BrokenPipe || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    if !gone {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Whether output was lost that a reader may still want.
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}
