//! Large values, stored in runs apart from the rows.
