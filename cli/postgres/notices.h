/* NOTICEs and WARNINGs of a session. Code of other roles raises them, in a loop if it wants. */

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <libpq-fe.h>

/* Keeps them, and prints equal ones once, at the end of the work that the label names. */
class Notices
{
public:
    Notices() = default;
    Notices(const Notices&) = delete;
    Notices& operator=(const Notices&) = delete;
    ~Notices() { flush(); }

    /* Collects notices from now on; this object must live as long as the handle. */
    void receive_from(PGconn* handle);
    /* Prints those before. An empty label stands for the server's address. */
    void label(const std::string& label);
    void server(const std::string& server) { server_ = server; }

private:
    struct Notice {
        std::string text;
        std::size_t times;
    };

    static void receive(void* notices, const PGresult* notice);
    void add(std::string text);
    void flush();

    std::string label_;
    std::string server_;
    std::vector<Notice> kept_;
    std::size_t left_out_ = 0;
};
