# Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
#
# ruby public_ids.rb FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
# program says what, and exits with 1.
# frozen_string_literal: true

require 'openssl'

class PublicIds
  # keys: a Hash of versions, letters from a to z, to keys of 24 bytes. The key of current makes names.
  def initialize(keys, current)
    keys.each do |version, key|
      next if version.match?(/\A[a-z]\z/) && key.bytesize == 24

      raise ArgumentError, "key \"#{version}\": a version is one letter from a to z, and a key has 24 bytes"
    end
    @keys = keys
    @current = current
  end

  def name_of(id)
    block = crypt(:encrypt, @keys.fetch(@current), [id].pack('q>'))
    @current + [block].pack('m0').tr('+/', '-_').delete('=')
  end

  # The ID; of a name that was not made with a key of these, some number.
  def id_of(name)
    raise ArgumentError, "a public name has 12 characters, not #{name.length}" if name.length != 12
    raise ArgumentError, "not a public name: \"#{name}\"" unless name.match?(/\A[a-z][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]\z/)

    key = @keys.fetch(name[0]) { raise ArgumentError, "no key of version \"#{name[0]}\"" }
    block = "#{name[1..].tr('-_', '+/')}=".unpack1('m0')
    crypt(:decrypt, key, block).unpack1('q>')
  end

  private

  def crypt(direction, key, block)
    cipher = OpenSSL::Cipher.new('des-ede3').public_send(direction)
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
