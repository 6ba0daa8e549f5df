#pragma once
#include <string>

namespace orrery::media {

/// Error of kind request if the file's container (MP4 and MOV, Matroska and WebM, AVI and WebP) says that it
/// is longer than the file. FFmpeg takes such a file for a shorter clip. Other files pass: decoders notice
/// a picture that is cut; a GIF, MPEG-TS or FLV cut between two frames cannot be told from a whole one.
void require_complete(const std::string& path);

}  // namespace orrery::media
