#pragma once
#include <string>
#include <vector>

#include "orrery/app/environment.h"
#include "orrery/config/request.h"

// One function per command: the words behind its name → the process's exit code. Errors come out as
// exceptions, except those of a sample that --keep-going steps over: they are reported and decide the exit
// code.
namespace orrery::app {

/// The whole command line without the program's name: help, version or one of the commands below.
int run(const std::vector<std::string>& words);

int generate(const std::vector<std::string>& words, const Environment& environment);
int verify(const std::vector<std::string>& words, const Environment& environment);
int plan(const std::vector<std::string>& words, const Environment& environment);
int inspect(const std::vector<std::string>& words, const Environment& environment);

/// Gives each sample from input files the file that it is written to: FOLDER/NAME.mp4 (.jpg for a single
/// frame, .png where the model makes pictures) in the folder that `output` names, which is made. A request of
/// the command line keeps its `output`; without one it is called by its name, and without a name the engine
/// has a default.
void place_outputs(std::vector<config::Request>& requests, bool from_files, bool pictures);

}  // namespace orrery::app
