# Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
#
# ruby public_ids.rb FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
# program says what, and exits with 1.
# frozen_string_literal: true

require 'openssl'

class PublicIds
  # By the length of a key: its cipher, and the zeros that fill up the block behind the ID.
  CIPHERS = { 32 => ['aes-256-ecb', "\0".b * 8], 24 => ['des-ede3', ''.b] }.freeze
  NAME = /\A[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])\z/

  # keys: a Hash of versions, letters from a to z, to keys of 32 bytes (AES) or 24 (3DES). That of current makes names.
  def initialize(keys, current)
    keys.each { |version, key| check_key(version, key) }
    @keys = keys
    @current = current
  end

  def name_of(id)
    key = @keys.fetch(@current)
    block = crypt(:encrypt, key, [id].pack('q>') + CIPHERS[key.bytesize].last)
    @current + [block].pack('m0').tr('+/', '-_').delete('=')
  end

  # The ID. A name that was not made with a key of these is an error with AES, and some number with 3DES.
  def id_of(name)
    if name.length != 23 && name.length != 12
      raise ArgumentError, "a public name has 23 characters, or 12 with 3DES, not #{name.length}"
    end
    raise ArgumentError, "not a public name: \"#{name}\"" unless name.match?(NAME)

    key = @keys.fetch(name[0]) { raise ArgumentError, "no key of version \"#{name[0]}\"" }
    zeros = CIPHERS[key.bytesize].last
    block = name[1..].tr('-_', '+/').unpack1('m')
    if block.bytesize == 8 + zeros.bytesize
      block = crypt(:decrypt, key, block)
      return block.unpack1('q>') if block.byteslice(8..) == zeros
    end
    raise ArgumentError, "not made with key \"#{name[0]}\": \"#{name}\""
  end

  private

  def check_key(version, key)
    unless version.match?(/\A[a-z]\z/) && CIPHERS.key?(key.bytesize)
      raise ArgumentError,
            "key \"#{version}\": a version is one letter from a to z, and a key has 32 bytes (AES) or 24 (3DES)"
    end
    parts = key.unpack('Q>*').map { |part| part & 0xfefefefefefefefe }
    return if parts.uniq == parts # otherwise 3DES would be DES; random keys have none

    raise ArgumentError, "key \"#{version}\" is weak: two of its parts of 8 bytes are equal"
  end

  def crypt(direction, key, block)
    cipher = OpenSSL::Cipher.new(CIPHERS[key.bytesize].first).public_send(direction)
    cipher.key = key
    cipher.padding = 0
    cipher.update(block) + cipher.final
  end
end

def check(wanted, got)
  abort "ruby: #{got} in place of #{wanted}" if wanted != got
end

def refusal(version, key, name)
  "#{name} is ID #{PublicIds.new({ version => key }, version).id_of(name)}"
rescue ArgumentError => e
  e.message
end

def main(file)
  vectors = File.readlines(file, chomp: true).reject { |line| line.empty? || line.start_with?('#') }
                .map { |line| line.split(' ', 5) }
  keys = vectors.select { |kind,| kind == 'made' }.to_h { |_, version, key| [version, [key].pack('H*')] }
  vectors.each do |kind, version, key, value, result|
    if kind == 'made'
      check(result, PublicIds.new(keys, version).name_of(value.to_i))
      check(value.to_i, PublicIds.new(keys, version).id_of(result))
    else
      check(result, refusal(version, [key].pack('H*'), value))
    end
  end
  puts "ruby #{RUBY_VERSION}, #{OpenSSL::OPENSSL_LIBRARY_VERSION}: #{vectors.size} vectors hold"
end

main(ARGV.fetch(0)) if $PROGRAM_NAME == __FILE__
