#pragma once

#include "cli/json/json_writer.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Writes two members of an object that is open: "structure", the nested content of an archive, and "shared", what of
/// it lies in several places or too deep. No key and no value is lost, and each is written once, so that the text grows
/// with the file and not with what its references unfold to.
///
/// None, bools, ints of 64 bits, finite floats, strings and lists are JSON's own; so are dicts (OrderedDict too) whose
/// keys are all strings, unless one of those is a word below. All else is an object whose first member says what it is:
///
///   {"tensor": NAME}             {"int": "DIGITS"}       {"float": "nan"}        {"complex": [REAL, IMAGINARY]}
///   {"bytes": "LATIN-1"}         {"dtype": NAME}         {"global": NAME}        {"tuple": [...]}
///   {"set": [...]}               {"dict": [[KEY, VALUE], ...]}                   {"object": NAME, "arguments": [...]}
///   {"shared": N}                stands for item N of "shared"
///
/// with "type" where the class has a name of its own (torch.Size, defaultdict), and "state" where an object has one.
void write_content(JsonWriter& out, const Archive& archive);

}  // namespace penstock::cli
