/* The standard output: an error of it is an error of the command, or a file that is cut would look
 * complete. */

#pragma once

/* At the begin of the program, before any file is opened: std::cout notes the first error. */
void open_output();

/* Failure with the reason if some of the output could not be written. */
void require_output();

/* Writes the buffer of std::cout. Failure as above. */
void flush_output();

/* At the end of the program: the same, and closes the output, because a file system on a network
 * can tell of a full disk as late as that. */
void close_output();
