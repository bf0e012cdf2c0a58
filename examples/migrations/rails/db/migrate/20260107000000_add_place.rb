class AddPlace < ActiveRecord::Migration[6.1]
  def change
    add_column :albums, :place, :text
  end
end
