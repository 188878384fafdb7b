"""Programs that are wrong at present, with what happens: captured from Python, and by the command.
A program that is here and comes out right fails its test: take it out."""

PYTHON: dict[str, str] = {
    "loops.rows_of_one_list":
        "interpreted, captured in train: train, input 0, call 0: raises TypeError: "
        "'immutable_list' object does not ...",
}
COMMAND: dict[str, str] = {
    "identity.in_place_returns_itself":
        "train, no_grad, input 0, call 0: result[1][0]: False, not True",
    "identity.out_is_returned": "train, no_grad, input 0, call 0: result[1][0]: False, not True",
    "identity.no_copy_where_none_is_needed":
        "train, no_grad, input 0, call 0: result[1][0]: False, not True",
    "identity.augmented_keeps_the_object":
        "train, no_grad, input 0, call 0: result[1][0]: False, not True",
    "identity.equal_is_not_identical":
        "train, no_grad, input 0, call 0: raises ValueError('eq([float32[3]], [float32[3]]): "
        "cannot compare two tensors ...",
    "identity.choice_keeps_identity":
        "train, no_grad, input 0, call 0: result[1][0]: False, not True",
    "identity.named_results_of_torch":
        "train, no_grad, input 0, call 0: raises TypeError(\"getattr((float32[2], int64[2]), "
        "'values'): 'tuple' has no ...",
    "identity.named_result_returned":
        "train, no_grad, input 0, call 0: result[0]: 'tuple', not 'max'",
    "identity.shapes_returned":
        "train, no_grad, input 0, call 0: result[1][0][0]: 'tuple', not 'Size'",
    "identity.branch_on_requires_grad":
        "train, no_grad, input 0, call 0: result: [3.0, 4.0, 5.0], not [2.0, 4.0, 6.0]",
    "loops.list_times_a_number":
        "train, no_grad, input 0, call 0: result[1][0]: [0.0, 0.0, 0.0], not [6.0, 12.0, 18.0]",
    "loops.rows_of_one_list": "train, no_grad, input 0, call 0: result[1][1][1][0][1][1]: 0, not 5",
    "loops.rows_of_their_own":
        "train, no_grad, input 0, call 0: result[1][1][1][0][1][1]: 0, not 5",
    "loops.sieve": "train, no_grad, input 0, call 0: result[1][1][1][4]: True, not False",
    "loops.to_a_list_and_back":
        "train, no_grad, input 0, call 0: raises TypeError(\"sort(): argument 'self' must be "
        "Tensor, not list\"), not None",
    "loops.sizes_by_elements":
        "train, no_grad, input 0, call 0: result[1][1][0]: 'tuple', not 'Size'",
    "modules.HoldsSubclassOfBatchNorm":
        "train, no_grad, input 0, call 0: state: norm.running_var: [0.862, 0.961, 0.871], not "
        "[1.012, 1.111, 1.021]",
    "modules.BufferOfFewerDimensions":
        "train, no_grad, input 0, call 0: state: last: shape torch.Size([3]), not "
        "torch.Size([])",
    "modules.BufferOfOtherDtype":
        "train, no_grad, input 0, call 0: state: last: dtype torch.int64, not torch.float32",
    "modules.SharedParameter":
        "train, no_grad, input 0, call 0: result: [-0.894, 0.961, 0.524, -0.947, 0.930, 0.489],"
        " not [-0.834, 0.917, ...",
    "numbers.not_a_number": "train, no_grad, input 0, call 0: result[1][4]: True, not False",
    "numbers.float_power_overflow":
        "train, no_grad, input 0, call 0: raises None, not OverflowError(34, 'Numerical result "
        "out of range')",
    "randomness.AttentionDropout":
        "train, no_grad, input 0, call 0: raises TypeError('multi_head_attention_forward() "
        "takes at most 24 arguments (25 ...",
    "structures.named_tuple_as_a_result":
        "train, no_grad, input 0, call 0: result[0]: 'tuple', not 'Pair'",
    "structures.named_tuple_unpacked":
        "train, no_grad, input 0, call 0: raises ValueError('eq((float32[3], 3.0), (float32[3],"
        " 3.0)): cannot compare two ...",
    "structures.views_of_a_dict":
        "train, no_grad, input 0, call 0: result[1][0][1]: holds [0], not [0, 1]",
    "structures.input_list_kept_under_two_names":
        "train, no_grad, input 0, call 0: result[1][0]: [1.0, 2.0, 3.0], not [5.0, 10.0, 15.0]",
    "structures.same_tensor_twice":
        "train, no_grad, input 0, call 0: result[1][1]: False, not True",
    "structures.transposed_in_place":
        "train, no_grad, input 0, call 0: result[1][0]: shape torch.Size([2, 3]), not "
        "torch.Size([3, 2])",
    "structures.contiguous_or_copy":
        "train, no_grad, input 0, call 0: result[1][2]: False, not True",
}
