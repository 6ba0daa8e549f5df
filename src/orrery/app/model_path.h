#pragma once
#include <string>

#include "orrery/config/settings.h"

namespace orrery::app {

/// The settings with every part of the model as a path that exists. `model` may be
///   a folder or file                    taken as it is;
///   nothing                             the checkpoint that comes with the program (with --checkpoint-path:
///   2B/post-trained); owner/name or owner/name@revision   looked up in `hub`, Hugging Face's cache folder;
///   an official name, 2B/post-trained   its .pt, VAE and text encoder, looked up there too, and the variant.
/// The text encoder of an official model is only asked for if needs_text. Errors: checkpoint, code
/// missing_file, with the command that fetches what is not there; request for a name that is none of these.
config::Settings find_model(config::Settings settings, const std::string& hub,
                            const std::string& program_folder, bool needs_text);

}  // namespace orrery::app
