//! Pages: the values of some rows of one column, as bytes.
