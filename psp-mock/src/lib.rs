//! Mock PSP.
