//! Laws that hold for every cluster, tried on seeded random ones. A failure prints its seed.
