//! Output of kernels' `printf`.

use std::io::Write;

/// The stream that a kernel prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output: `printf`.
    Out,
    /// Standard error: the message of a failed `assert`.
    Error,
}

/// Takes what kernels print, see [`SimHost::set_device_output`](crate::SimHost::set_device_output). It is called while a kernel runs
/// and must not call HIP.
pub trait DeviceOutput: Send {
    /// A piece of text as a kernel's work-item printed it. It need not be UTF-8.
    fn write(&mut self, stream: OutputStream, text: &[u8]);
}

/// The process's own streams.
pub(crate) struct ProcessOutput;

impl DeviceOutput for ProcessOutput {
    fn write(&mut self, stream: OutputStream, text: &[u8]) {
        // Nobody to tell where the program has closed them.
        let _ = match stream {
            OutputStream::Out => std::io::stdout().write_all(text),
            OutputStream::Error => std::io::stderr().write_all(text),
        };
    }
}
