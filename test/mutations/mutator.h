/* Random edits of good texts: bytes, pieces, words of the format, lines, two texts joined. */
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../unit/random_seed.h"

class Mutator
{
public:
    /* tokens: words that the format treats in a special way. */
    Mutator(std::mt19937_64 random, std::vector<std::string> seeds, std::vector<std::string> tokens)
        : random_(random), seeds_(std::move(seeds)), tokens_(std::move(tokens))
    {
        /* What any reader of text may stumble upon. */
        for (const char* token : {"",
                                  " ",
                                  "\n",
                                  "\r\n",
                                  "\t",
                                  "\"",
                                  "'",
                                  "''",
                                  "\\",
                                  "\\'",
                                  "#",
                                  ";",
                                  ",",
                                  "=",
                                  "-1",
                                  "0",
                                  "4294967301",
                                  "99999999999999999999",
                                  "1e400",
                                  "\x01",
                                  "\x7f",
                                  "\xff\xfe",
                                  "\xc3",
                                  "\xed\xa0\x80",
                                  "\xef\xbb\xbf"})
            tokens_.emplace_back(token);
        tokens_.emplace_back(1, '\0');
    }

    /* Few edits, most often: a text that is wrong in many places is refused at the first. */
    std::string make()
    {
        std::string text = any_of(seeds_);
        for (std::int64_t edits = below(3) == 0 ? between(random_, 2, 8) : 1; edits > 0; edits--)
            edit(text);
        return text;
    }

private:
    std::size_t below(std::size_t limit)
    {
        return static_cast<std::size_t>(
            between(random_, 0, static_cast<std::int64_t>(limit == 0 ? 0 : limit - 1)));
    }

    const std::string& any_of(const std::vector<std::string>& texts)
    {
        return texts[below(texts.size())];
    }

    char any_byte() { return static_cast<char>(below(256)); }

    /* Begin and size of a piece, of a few bytes most often. */
    std::pair<std::size_t, std::size_t> any_piece(const std::string& text)
    {
        const std::size_t begin = below(text.size() + 1);
        const std::size_t limit = below(4) == 0 ? text.size() : 12;
        return {begin, std::min(below(limit + 1), text.size() - begin)};
    }

    static bool is_in_word(char c)
    {
        const std::string parts = "_.-%[]";
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               parts.find(c) != std::string::npos;
    }

    /* A number, a name, a key. */
    std::pair<std::size_t, std::size_t> any_word(const std::string& text)
    {
        std::size_t begin = below(text.size() + 1);
        std::size_t end = begin;
        while (begin > 0 && is_in_word(text[begin - 1]))
            begin--;
        while (end < text.size() && is_in_word(text[end]))
            end++;
        return {begin, end - begin};
    }

    std::pair<std::size_t, std::size_t> any_line(const std::string& text)
    {
        const std::size_t at = below(text.size() + 1);
        const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
        const std::size_t begin = before == std::string::npos ? 0 : before + 1;
        return {begin, std::min(text.find('\n', at), text.size() - 1) + 1 - begin};
    }

    void edit(std::string& text)
    {
        const auto [begin, size] = any_piece(text);
        switch (below(12)) {
        case 0:
            if (begin < text.size())
                text[begin] = static_cast<char>(text[begin] ^ (1 << below(8)));
            break;
        case 1:
            text.replace(begin, size, below(4), any_byte());
            break;
        case 2:
            text.erase(begin, size);
            break;
        case 3:
            text.insert(below(text.size() + 1), text.substr(begin, size));
            break;
        case 4:
            text.insert(begin, any_of(tokens_));
            break;
        case 5:
        case 6:
        case 7:
            replace_word(text);
            break;
        case 8:
            text.resize(begin);
            break;
        case 9:
            splice(text);
            break;
        case 10:
            edit_lines(text);
            break;
        default:
            repeat(text);
            break;
        }
    }

    void replace_word(std::string& text)
    {
        const auto [begin, size] = any_word(text);
        const auto [other, other_size] = any_word(text);
        text.replace(begin, size, below(3) == 0 ? text.substr(other, other_size) : any_of(tokens_));
    }

    /* The begin of one and the end of another. */
    void splice(std::string& text)
    {
        const std::string& other = any_of(seeds_);
        text.resize(below(text.size() + 1));
        text += other.substr(below(other.size() + 1));
    }

    void edit_lines(std::string& text)
    {
        if (below(4) == 0) {
            for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
                text.insert(at, 1, '\r');
            return;
        }
        const auto [begin, size] = any_line(text);
        const std::string line = text.substr(begin, size);
        if (below(2) == 0)
            text.erase(begin, size);
        text.insert(any_line(text).first, line);
    }

    /* Long and deep texts, now and then: a reader must not take the square of their size. */
    void repeat(std::string& text)
    {
        const bool is_long = below(64) == 0;
        const auto [begin, size] = any_piece(text);
        const std::string piece = below(2) == 0 ? any_of(tokens_) : text.substr(begin, size);
        const std::size_t total = is_long ? 65536 : 64;
        std::string many;
        while (!piece.empty() && many.size() < total)
            many += piece;
        text.insert(begin, many);
    }

    std::mt19937_64 random_;
    std::vector<std::string> seeds_;
    std::vector<std::string> tokens_;
};
