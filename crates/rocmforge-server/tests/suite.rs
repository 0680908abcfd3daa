//! Faults in the middle, figures, and forms of answers.

mod common;

mod suite {
    mod ends;
    mod faults;
    mod figures;
    mod forms;
}
