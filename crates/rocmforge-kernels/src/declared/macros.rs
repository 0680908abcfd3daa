//! The macro that makes a launcher and its declaration of one statement.

/// Declares a kernel of f32 operands: from it come the launcher `Kernels::NAME` with its checks and errors, and a [`Declared`](super::Declared).
///
/// ```text
/// kernel! {
///     /// `y = x / sqrt(mean(x^2) + eps) * weight`, row by row. `y` may be `x`.
///     RMS_NORM: rms_norm in "rms_norm"
///     reads x [rows, cols] of -2.0..3.0, weight [cols] of -1.0..1.0;
///     writes y [rows, cols] over ["x"];
///     dims rows, cols;
///     numbers eps = 1e-5, if eps >= 0.0 && eps.is_finite(), "finite and not negative";
///     launch geometry::by_row(rows, cols, "rms_norm_rows", "rms_norm_block"), with [rows, cols];
///     gives |c| reference::rms_norm(c.f32("x"), c.f32("weight"), eps), within 2e-6;
///     tested ROWS; counted &[&[64, 2048], &[256, 512]]; moved &[&[64, 576]], Again::Vector; timed &[&[GIB / 4096, 4096]];
/// }
/// ```
///
/// * Operands are the launcher's first parameters and the kernel's first arguments, in this order. A shape is a list of dimensions. `over` names the operands that the output may be.
/// * Dimensions are its next parameters: `dims a, b;`, or `array [a, b];` for one array. `count n = y.len();` is no parameter: an operand's
///   length gives it, in 64 bits.
/// * Numbers are its last parameters, f32, each with the value that tests give it.
/// * In `launch` and `with` the dimensions have the types that the kernel takes: u32, and u64 for a `count`. The numbers are the kernel's last arguments.
macro_rules! kernel {
    (
        $(#[doc = $doc:literal])*
        $declared:ident: $name:ident in $family:literal
        $(reads $($input:ident [$($input_dim:ident),*] of $range:expr),+;)?
        writes $output:ident [$($output_dim:ident),*] over [$($over:literal),*];
        $(dims $($dim:ident),+;)?
        $(array [$($array:ident),+];)?
        $(count $count:ident = $count_from:expr;)?
        $(numbers $($number:ident = $usual:literal, if $fits:expr, $must:literal),+;)?
        launch $geometry:expr, with [$($with:expr),*];
        gives $expected:expr, within $within:expr;
        tested $tested:expr; counted $counted:expr; moved $moved:expr, $again:expr; timed $timed:expr;
    ) => {
        impl $crate::Kernels {
            $(#[doc = $doc])*
            ///
            /// # Errors
            ///
            /// A length that is not that of the shape, overlap other than the one allowed, a dimension of 0, a number out of its range.
            #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
            pub fn $name(
                &self,
                stream: &rocmforge_runtime::HipStream,
                $($($input: &rocmforge_runtime::HipBuffer<f32>,)+)?
                $output: &rocmforge_runtime::HipBuffer<f32>,
                $($($dim: usize,)+)?
                $([$($array),+]: [usize; $crate::declared::kernel!(@count $($array)+)],)?
                $($($number: f32,)+)?
            ) -> $crate::KernelResult<()> {
                let op = self.op(stringify!($name));
                $(let $count = $count_from; op.dim_to("elements", $count, usize::MAX)?;)?
                $($(op.dim(stringify!($dim), $dim)?;)+)?
                $($(op.dim(stringify!($array), $array)?;)+)?
                $($(op.value_of(stringify!($number), $number, $fits, $must)?;)+)?
                let op = op
                    $($(.read(stringify!($input), $input, &[$($input_dim),*])?)+)?
                    .write(stringify!($output), $output, &[$($output_dim),*], &[$($over),*])?;
                // Within what the device counts, as checked above.
                $(let $count = $count as u64;)?
                $($(let $dim = $dim as u32;)+)?
                $($(let $array = $array as u32;)+)?
                let launch = $geometry;
                op $(.value($with))* $($(.value($number))+)? .run(stream, $family, launch)
            }
        }

        pub(super) const $declared: $crate::declared::Declared = $crate::declared::Declared {
            name: stringify!($name),
            call: {
                fn call(c: &mut $crate::declared::Call<'_>, dims: &[usize]) -> $crate::KernelResult<()> {
                    let mut dims = dims.iter().copied();
                    $($(let $dim = dims.next().unwrap_or(1);)+)?
                    $($(let $array = dims.next().unwrap_or(1);)+)?
                    $(let $count = dims.next().unwrap_or(1);)?
                    $($(let $number: f32 = $usual;)+)?
                    $($(let $input = c.input(stringify!($input), 1 $(* $input_dim)*, $range)?;)+)?
                    let $output = c.output(stringify!($output), 1 $(* $output_dim)*)?;
                    c.kernels.$name(
                        c.stream,
                        $($(&$input,)+)?
                        &$output,
                        $($($dim,)+)?
                        $([$($array),+],)?
                        $($($number,)+)?
                    )?;
                    c.expect(stringify!($output), $within, $expected);
                    Ok(())
                }
                call
            },
            tested: $tested,
            counted: $counted,
            moved: $moved,
            again: $again,
            timed: $timed,
            row: Some($crate::declared::Row {
                family: $family,
                arguments: concat!(
                    $($(stringify!($input), ", ",)+)?
                    stringify!($output)
                    $(, ", u32 ", stringify!($with))*
                    $($(, ", f32 ", stringify!($number))+)?
                ),
                long: concat!($(stringify!($count))?),
                launch: stringify!($geometry),
                computes: concat!($($doc, "\n"),*),
            }),
        };
    };
    (@count $($token:tt)+) => { [$($crate::declared::kernel!(@one $token)),+].len() };
    (@one $token:tt) => { () };
}
pub(crate) use kernel;

/// Declarations by type of weights: `call` has the type as its last parameter, and `base` gives the rest of the type's declaration.
macro_rules! by_weight_type {
    ($call:ident, $base:ident) => {
        $crate::declared::by_weight_type!($call, $base:
            F32 F16 Bf16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2K Q3K Q4K Q5K Q6K Iq4Nl Iq4Xs Mxfp4
            Iq2Xxs Iq2Xs Iq2S Iq3Xxs Iq3S Iq1S Iq1M Tq1_0 Tq2_0 Q1_0 Q2_0 Nvfp4)
    };
    ($call:ident, $base:ident, packable) => {
        $crate::declared::by_weight_type!($call, $base: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2K Q3K Q4K Q5K Q6K Iq4Nl Iq4Xs Mxfp4)
    };
    ($call:ident, $base:ident: $($ty:ident)+) => {
        &[$($crate::declared::Declared {
            call: |c, dims| $call(c, dims, $crate::WeightType::$ty),
            ..$base($crate::WeightType::$ty)
        }),+]
    };
}
pub(crate) use by_weight_type;
