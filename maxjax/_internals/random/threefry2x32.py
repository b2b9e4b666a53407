"""The functions of a generator, which a pickle of keys names and nothing calls."""

threefry_seed = threefry_split = threefry_random_bits = threefry_fold_in = "threefry2x32"
